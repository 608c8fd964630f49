#include "gguf/mapping.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "base/round.h"
#include "gguf/system_refusal.h"

namespace tw::gguf {
namespace {

// Closes a descriptor; the mapping made from it stays.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

uint64_t page_bytes() {
  static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

std::string_view file_kind(uint32_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Result<Mapping> Mapping::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK the opening of a pipe waits for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return system_refusal(path, "opened", errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_refusal(path, "examined", errno);
  if (!S_ISREG(status.st_mode))
    return refuse(RefusalKind::Io, path.string(),
                  fmt::format("found {}, expected a regular file", file_kind(status.st_mode)));
  if (status.st_size == 0)
    return refuse(RefusalKind::Malformed, path.string(), "the file is empty, expected a GGUF file");
  const auto size = static_cast<size_t>(status.st_size);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (start == MAP_FAILED) return system_refusal(path, "mapped", errno);
  return Mapping({static_cast<const std::byte*>(start), size});
}

Mapping::Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void Mapping::forget(uint64_t offset, uint64_t count) const {
  TW_CHECK(offset <= bytes_.size() && count <= bytes_.size() - offset, "bytes {}+{} of a mapping of {}", offset, count,
           bytes_.size());
  const uint64_t page = page_bytes();
  const uint64_t first = round_up(offset, page);
  const uint64_t last = (offset + count) / page * page;
  // Advice: when it is not taken, the pages stay.
  if (first < last) ::madvise(const_cast<std::byte*>(bytes_.data()) + first, last - first, MADV_DONTNEED);
}

}  // namespace tw::gguf
