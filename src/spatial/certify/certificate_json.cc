#include "spatial/certify/certificate_json.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <type_traits>

namespace tw::spatial {
namespace {

using Json = nlohmann::ordered_json;

// The first field of a file.
template <class T>
constexpr std::string_view kFormat = {};
template <>
constexpr std::string_view kFormat<Certificate> = "tilewright spatial certificate 1";
template <>
constexpr std::string_view kFormat<StepCertificate> = "tilewright spatial step certificate 1";

// ---- the fields of each struct, once, for the reader and the writer ----

template <class Visit>
void fields(BufferEvidence& e, Visit&& v) {
  v("page_bytes", e.page_bytes);
  v("depth", e.depth);
  v("high_water", e.high_water);
}
template <class Visit>
void fields(EdgeEvidence& e, Visit&& v) {
  v("producer", e.producer);
  v("buffer", e.buffer);
  v("consumer", e.consumer);
  v("pushes", e.pushes);
  v("pops", e.pops);
}
template <class Visit>
void fields(MoveEvidence& e, Visit&& v) {
  v("stage", e.stage);
  v("first", e.first);
  v("last", e.last);
}
template <class Visit>
void fields(ResultEvidence& e, Visit&& v) {
  v("tensor", e.tensor);
  v("written", e.written);
  v("tiles", e.tiles);
}
template <class Visit>
void fields(ReadEvidence& e, Visit&& v) {
  v("stage", e.stage);
  v("operand", e.operand);
  v("first", e.first);
  v("last", e.last);
  v("checked_at_run", e.checked_at_run);
}
template <class Visit>
void fields(Certificate& c, Visit&& v) {
  v("program", c.program);
  v("fingerprint", c.fingerprint);
  v("target", c.target);
  v("footprint", c.footprint);
  v("local_bytes", c.local_bytes);
  v("accumulator_tiles", c.accumulator_tiles);
  v("widest_computed_page", c.widest_computed_page);
  v("checks", c.checks);
  v("buffers", c.buffers);
  v("edges", c.edges);
  v("moves", c.moves);
  v("results", c.results);
  v("reads", c.reads);
}

template <class Visit>
void fields(StorageEvidence& e, Visit&& v) {
  v("producer", e.producer);
  v("readers", e.readers);
}
template <class Visit>
void fields(StepCertificate& c, Visit&& v) {
  v("name", c.name);
  v("target", c.target);
  v("sections", c.sections);
  v("storages", c.storages);
}

// ---- writing ----

template <class T>
Json written(const std::vector<T>& all);

template <class T>
Json written(T value) {
  if constexpr (std::is_enum_v<T>) {
    return index(value);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else {
    Json object = Json::object();
    fields(value, [&](const char* key, const auto& field) { object[key] = written(field); });
    return object;
  }
}
template <class T>
Json written(const std::vector<T>& all) {
  Json array = Json::array();
  for (const T& one : all) array.push_back(written(one));
  return array;
}

// ---- reading: the first fault found stays ----

class Reader {
 public:
  // `known`: fields that may be there beside the struct's.
  template <class T>
  void object(const Json& json, T& value, const std::string& at, size_t known = 0) {
    if (!json.is_object()) return wrong(at, "an object");
    size_t count = known;
    fields(value, [&](const char* key, auto& field) {
      ++count;
      const auto found = json.find(key);
      const std::string below = at.empty() ? key : fmt::format("{}.{}", at, key);
      if (found == json.end()) return fail(fmt::format("{} is missing", below));
      read(*found, field, below);
    });
    if (fault_.empty() && json.size() != count)
      fail(fmt::format("{} has {} fields, expected {}", at.empty() ? "the object" : at, json.size(), count));
  }

  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  void fail(std::string text) {
    if (fault_.empty()) fault_ = std::move(text);
  }
  void wrong(const std::string& at, std::string_view expected) { fail(fmt::format("{} is not {}", at, expected)); }

  template <class T>
  void read(const Json& json, T& value, const std::string& at) {
    if constexpr (std::is_enum_v<T>) {
      uint32_t id = 0;
      read(json, id, at);
      value = T{id};
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) return wrong(at, "true or false");
      value = json.get<bool>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) return wrong(at, "text");
      value = json.get<std::string>();
    } else if constexpr (std::is_same_v<T, int64_t>) {
      if (!json.is_number_integer() || (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX))
        return wrong(at, "an integer of 64 bits");
      value = json.get<int64_t>();
    } else if constexpr (std::is_unsigned_v<T>) {
      if (!json.is_number_unsigned() || json.get<uint64_t>() > std::numeric_limits<T>::max())
        return wrong(at, fmt::format("a number of {} bits", 8 * sizeof(T)));
      value = static_cast<T>(json.get<uint64_t>());
    } else {
      object(json, value, at);
    }
  }
  template <class T>
  void read(const Json& json, std::vector<T>& all, const std::string& at) {
    if (!json.is_array()) return wrong(at, "a list");
    for (size_t i = 0; i < json.size() && fault_.empty(); ++i)
      read(json[i], all.emplace_back(), fmt::format("{}[{}]", at, i));
  }

  std::string fault_;
};

template <class T>
std::string text_of(const T& certificate) {
  Json json = Json::object();
  json["format"] = kFormat<T>;
  json.update(written(certificate));
  return json.dump(1) + "\n";
}

template <class T>
Result<T> parsed(std::string_view text, std::string_view subject) {
  const Json json = Json::parse(text, nullptr, false);
  const auto refused = [&](std::string reason) { return refuse(RefusalKind::Malformed, subject, std::move(reason)); };
  if (json.is_discarded() || !json.is_object()) return refused("is no JSON object");
  const auto format = json.find("format");
  if (format == json.end() || !format->is_string() || format->template get<std::string>() != kFormat<T>)
    return refused(fmt::format("is not of the format \"{}\"", kFormat<T>));
  T certificate;
  Reader reader;
  reader.object(json, certificate, {}, 1);
  if (!reader.fault().empty()) return refused(reader.fault());
  return certificate;
}

Result<void> write_text(const std::string& text, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return refuse(RefusalKind::Io, path, "the certificate could not be written");
  return {};
}

Result<std::string> read_text(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || !text) return refuse(RefusalKind::Io, path, "the certificate could not be read");
  return text.str();
}

}  // namespace

std::string to_json(const Certificate& certificate) { return text_of(certificate); }
std::string to_json(const StepCertificate& certificate) { return text_of(certificate); }

Result<Certificate> certificate_from_json(std::string_view text, std::string_view subject) {
  return parsed<Certificate>(text, subject);
}
Result<StepCertificate> step_certificate_from_json(std::string_view text, std::string_view subject) {
  return parsed<StepCertificate>(text, subject);
}

Result<void> write_certificate(const Certificate& certificate, const std::string& path) {
  return write_text(to_json(certificate), path);
}
Result<void> write_certificate(const StepCertificate& certificate, const std::string& path) {
  return write_text(to_json(certificate), path);
}

Result<Certificate> read_certificate(const std::string& path) {
  TW_TRY(const std::string text, read_text(path));
  return certificate_from_json(text, path);
}
Result<StepCertificate> read_step_certificate(const std::string& path) {
  TW_TRY(const std::string text, read_text(path));
  return step_certificate_from_json(text, path);
}

}  // namespace tw::spatial
