#include "gguf/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "gguf/layout.h"
#include "gguf/mapping.h"
#include "gguf/system_refusal.h"

namespace tw::gguf {
namespace {

using Sink = std::function<Result<void>(std::span<const std::byte>)>;

// Gives the sink the whole file, front to back.
Result<void> emit(const FileSpec& spec, const TensorSource& source, const Sink& sink) {
  TW_TRY(const Layout layout, lay_out(spec));
  TW_TRY_VOID(sink(layout.head));
  const std::vector<std::byte> zeros(layout.alignment);
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    TW_TRY(const std::span<const std::byte> bytes, source(i));
    if (bytes.size() != layout.tensor_bytes[i])
      return refuse(
          RefusalKind::Malformed, spec.tensors[i].name,
          fmt::format("the tensor's source gave {} bytes, expected {}", bytes.size(), layout.tensor_bytes[i]));
    TW_TRY_VOID(sink(bytes));
    const uint64_t past = bytes.size() % layout.alignment;
    if (past != 0) TW_TRY_VOID(sink(std::span(zeros).first(layout.alignment - past)));
  }
  return {};
}

// What stands at `path` is replaced when the file is whole, so it must be a regular file or nothing: a device or a pipe
// would be taken away from all who use it.
Result<void> check_target(const std::filesystem::path& path) {
  if (path.empty()) return refuse(RefusalKind::Usage, "output", "the file to write has no name");
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return {};
  return refuse(RefusalKind::Io, path.string(),
                fmt::format("found {}, expected a regular file or none", file_kind(status.st_mode)),
                "Name another file to write.");
}

// A new file beside `path`, which becomes `path` on commit and is removed when it is not committed.
class TemporaryFile {
 public:
  static Result<TemporaryFile> create(const std::filesystem::path& path) {
    TW_TRY_VOID(check_target(path));
    // The process id keeps writers of one folder apart; a file that an ended process left is passed over.
    for (int attempt = 0;; ++attempt) {
      const std::string name = fmt::format("{}.{}-{}.tmp", path.string(), ::getpid(), attempt);
      const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd >= 0) return TemporaryFile(path, name, fd);
      if (errno != EEXIST || attempt == kAttempts) return system_refusal(path, "written", errno);
    }
  }

  TemporaryFile(TemporaryFile&& other) noexcept
      : path_(std::move(other.path_)), name_(std::exchange(other.name_, {})), fd_(std::exchange(other.fd_, -1)) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  Result<void> append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), std::min<size_t>(bytes.size(), kMaxWrite));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_refusal(path_, "written", errno);
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return {};
  }

  // The file is `size` bytes long from now on.
  Result<void> resize(uint64_t size) {
    if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) return system_refusal(path_, "written", errno);
    return {};
  }

  Result<void> commit() {
    if (::close(std::exchange(fd_, -1)) != 0) return system_refusal(path_, "written", errno);
    if (std::rename(name_.c_str(), path_.c_str()) != 0) return system_refusal(path_, "put in place", errno);
    name_.clear();
    return {};
  }

 private:
  static constexpr int kAttempts = 100;
  static constexpr size_t kMaxWrite = size_t{1} << 30;  // one call writes at most 2^31 - 4096 bytes

  TemporaryFile(std::filesystem::path path, std::string name, int fd)
      : path_(std::move(path)), name_(std::move(name)), fd_(fd) {}

  std::filesystem::path path_;
  std::string name_;
  int fd_;
};

}  // namespace

Result<void> write(const std::filesystem::path& path, const FileSpec& spec, const TensorSource& source) {
  TW_TRY(TemporaryFile file, TemporaryFile::create(path));
  TW_TRY_VOID(emit(spec, source, [&](std::span<const std::byte> bytes) { return file.append(bytes); }));
  return file.commit();
}

Result<void> write_holes(const std::filesystem::path& path, const FileSpec& spec) {
  TW_TRY(const Layout layout, lay_out(spec));
  TW_TRY(TemporaryFile file, TemporaryFile::create(path));
  TW_TRY_VOID(file.append(layout.head));
  uint64_t size = layout.head.size();
  for (const uint64_t bytes : layout.tensor_bytes) {
    size += (bytes + layout.alignment - 1) / layout.alignment * layout.alignment;
  }
  TW_TRY_VOID(file.resize(size));
  return file.commit();
}

Result<std::vector<std::byte>> write_bytes(const FileSpec& spec, const TensorSource& source) {
  std::vector<std::byte> out;
  TW_TRY_VOID(emit(spec, source, [&](std::span<const std::byte> bytes) -> Result<void> {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return {};
  }));
  return out;
}

}  // namespace tw::gguf
