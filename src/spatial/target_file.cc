#include "spatial/target_file.h"

#include <cpptoml.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/near_name.h"

namespace tw::spatial {
namespace {

constexpr size_t kMostBytes = 64 << 10;
constexpr int kMostBrackets = 16;  // the parser recurses once a bracket

std::string_view type_text(const cpptoml::base& value) {
  if (value.as<std::string>()) return "a string";
  if (value.as<int64_t>()) return "a whole number";
  if (value.as<double>()) return "a fraction";
  if (value.as<bool>()) return "true or false";
  if (value.is_array()) return "a list";
  if (value.is_table()) return "a table";
  return "something else";
}

// Reads the keys of one table, remembers which it read, and refuses with the file and the whole key.
class Reader {
 public:
  Reader(const cpptoml::table& table, std::string_view label, std::string prefix = {})
      : table_(table), label_(label), prefix_(std::move(prefix)) {}

  Result<void> text(std::string_view key, std::string& value) {
    TW_TRY(const auto found, get(key, "a string"));
    const auto typed = found->as<std::string>();
    if (!typed) return wrong(key, *found, "a string");
    value = typed->get();
    return {};
  }
  Result<void> flag(std::string_view key, bool& value) {
    if (!has(key)) return {};
    TW_TRY(const auto found, get(key, "true or false"));
    const auto typed = found->as<bool>();
    if (!typed) return wrong(key, *found, "true or false");
    value = typed->get();
    return {};
  }
  template <class Number>
  Result<void> number(std::string_view key, Number& value) {
    TW_TRY(const auto found, get(key, "a whole number"));
    return number_of(key, *found, value);
  }
  // [rows, cols]
  Result<void> pair(std::string_view key, uint32_t& first, uint32_t& second) {
    TW_TRY(const auto found, get(key, "two whole numbers"));
    const auto items = found->as_array();
    if (!items || items->get().size() != 2) return wrong(key, *found, "two whole numbers, [rows, cols]");
    TW_TRY_VOID(number_of(key, *items->get()[0], first));
    return number_of(key, *items->get()[1], second);
  }
  // A list of names, each read by `parse`.
  template <class T>
  Result<void> names(std::string_view key, std::set<T>& values, std::optional<T> (*parse)(std::string_view),
                     std::string_view expected) {
    TW_TRY(const auto found, get(key, "a list of names"));
    const auto items = found->as_array();
    if (!items) return wrong(key, *found, "a list of names");
    for (const auto& item : items->get()) {
      const auto typed = item->as<std::string>();
      if (!typed) return wrong(key, *item, "a list of names");
      const std::optional<T> value = parse(typed->get());
      if (!value) return refuse_at(key, fmt::format("has the entry \"{}\", expected {}", typed->get(), expected));
      values.insert(*value);
    }
    return {};
  }
  Result<void> precision(std::string_view key, std::optional<Precision>& value) {
    std::string word;
    TW_TRY_VOID(text(key, word));
    value = parse_precision(word);
    if (!value) return refuse_at(key, fmt::format("is \"{}\", expected {}", word, precision_names()));
    return {};
  }
  // The table of a key that may be absent.
  Result<std::shared_ptr<const cpptoml::table>> table(std::string_view key) {
    if (!has(key)) return std::shared_ptr<const cpptoml::table>();
    TW_TRY(const auto found, get(key, "a table"));
    if (!found->is_table()) return wrong(key, *found, "a table");
    return std::shared_ptr<const cpptoml::table>(found->as_table());
  }
  // Refuses a key that nothing has read.
  Result<void> finish() {
    for (const auto& [key, value] : table_) {
      if (std::find(read_.begin(), read_.end(), key) != read_.end()) continue;
      const std::vector<std::string_view> known(read_.begin(), read_.end());
      const std::optional<std::string_view> near = near_name(key, known);
      return refuse_at(key, "is no key of a target", near ? fmt::format("Did you mean {}{}?", prefix_, *near) : "");
    }
    return {};
  }
  [[nodiscard]] Refusal refuse_at(std::string_view key, std::string_view what, std::string remedy = {}) const {
    return refuse(RefusalKind::Malformed, label_, fmt::format("key {}{} {}", prefix_, key, what), std::move(remedy));
  }
  static std::string precision_names() {
    std::string names = "one of";
    for (int i = 0; i < kPrecisions; ++i) names += fmt::format("{} {}", i ? "," : "", name(static_cast<Precision>(i)));
    return names;
  }

 private:
  [[nodiscard]] bool has(std::string_view key) {
    read_.emplace_back(key);
    return table_.contains(std::string(key));
  }
  Result<std::shared_ptr<cpptoml::base>> get(std::string_view key, std::string_view expected) {
    if (!has(key)) return refuse_at(key, fmt::format("is missing, expected {}", expected));
    return table_.get(std::string(key));
  }
  [[nodiscard]] Refusal wrong(std::string_view key, const cpptoml::base& found, std::string_view expected) const {
    return refuse_at(key, fmt::format("is {}, expected {}", type_text(found), expected));
  }
  template <class Number>
  Result<void> number_of(std::string_view key, const cpptoml::base& found, Number& value) {
    const auto typed = found.as<int64_t>();
    if (!typed) return wrong(key, found, "a whole number");
    const int64_t number = typed->get();
    if (number < 0 || static_cast<uint64_t>(number) > std::numeric_limits<Number>::max())
      return refuse_at(key, fmt::format("is {}, expected 0 to {}", number, std::numeric_limits<Number>::max()));
    value = static_cast<Number>(number);
    return {};
  }

  const cpptoml::table& table_;
  std::string label_;
  std::string prefix_;
  std::vector<std::string> read_;
};

Result<void> read_datapath(Reader& root, std::string_view key, std::string_view label,
                           std::optional<Precision>& element, std::optional<Precision>& accumulator) {
  TW_TRY(const auto table, root.table(key));
  if (!table) return {};
  Reader reader(*table, label, std::string(key) + ".");
  TW_TRY_VOID(reader.precision("element", element));
  TW_TRY_VOID(reader.precision("accumulator", accumulator));
  return reader.finish();
}

std::string capability_names() {
  std::string names = "one of";
  for (int i = 0; i < kCapabilities; ++i) names += fmt::format("{} {}", i ? "," : "", name(static_cast<Capability>(i)));
  return names;
}

Result<Target> target_of(const cpptoml::table& table, std::string_view label) {
  Target target;
  Reader reader(table, label);
  TW_TRY_VOID(reader.text("name", target.name));
  TW_TRY_VOID(reader.text("description", target.description));
  TW_TRY_VOID(reader.pair("tile", target.tile.rows, target.tile.cols));
  TW_TRY_VOID(reader.pair("sites", target.site_rows, target.site_cols));
  TW_TRY_VOID(reader.number("local_bytes", target.local_bytes));
  TW_TRY_VOID(reader.number("accumulator_tiles", target.accumulator_tiles));
  TW_TRY_VOID(reader.names("precisions", target.precisions, &parse_precision, Reader::precision_names()));
  TW_TRY_VOID(reader.names("matmul_operands", target.matmul_operands, &parse_precision, Reader::precision_names()));
  TW_TRY_VOID(reader.names("capabilities", target.capabilities, &parse_capability, capability_names()));
  TW_TRY_VOID(reader.flag("reduce_needs_scaler", target.reduce_needs_scaler));
  TW_TRY_VOID(read_datapath(reader, "real", label, target.real_element, target.real_accumulator));
  TW_TRY_VOID(read_datapath(reader, "integer", label, target.integer_element, target.integer_accumulator));
  TW_TRY_VOID(reader.finish());
  for (const TargetFault& fault : target_faults(target)) return reader.refuse_at(fault.key, fault.text);
  return target;
}

}  // namespace

Result<Target> parse_target(std::string_view text, std::string_view label) {
  if (text.size() > kMostBytes)
    return refuse(RefusalKind::TooLarge, label,
                  fmt::format("has {} bytes, a target at most {}", text.size(), kMostBytes));
  int depth = 0, deepest = 0;
  for (const char c : text) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    deepest = std::max(deepest, depth);
  }
  if (deepest > kMostBrackets)
    return refuse(RefusalKind::Malformed, label,
                  fmt::format("has {} brackets open at once, expected at most {}", deepest, kMostBrackets));
  std::istringstream stream{std::string(text)};
  std::shared_ptr<cpptoml::table> table;
  try {
    table = cpptoml::parser(stream).parse();
  } catch (const std::exception& fault) {
    return refuse(RefusalKind::Malformed, label, fmt::format("is no TOML: {}", fault.what()));
  }
  return target_of(*table, label);
}

Result<Target> read_target(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  if (!file) return refuse(RefusalKind::Io, path, "cannot be opened", "Check the path of the target's file.");
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (file.bad()) return refuse(RefusalKind::Io, path, "cannot be read");
  return parse_target(text, path);
}

std::vector<std::string> target_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

Result<Target> find_target(std::string_view name_or_path, const std::string& folder) {
  if (name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".toml"))
    return read_target(std::string(name_or_path));
  const std::vector<std::string> names = target_names(folder);
  if (std::find(names.begin(), names.end(), name_or_path) != names.end())
    return read_target(fmt::format("{}/{}.toml", folder, name_or_path));
  return refuse(RefusalKind::Missing, name_or_path, fmt::format("there is no such target in {}", folder),
                names.empty() ? "Name the file of a target." : fmt::format("Known are {}.", fmt::join(names, ", ")));
}

}  // namespace tw::spatial
