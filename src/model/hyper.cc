#include "model/hyper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tw::model {

namespace {

bool text_allowed(std::string_view texts, std::string_view value) {
  for (size_t from = 0; from <= texts.size();) {
    const size_t to = std::min(texts.find(' ', from), texts.size());
    if (texts.substr(from, to - from) == value) return true;
    from = to + 1;
  }
  return false;
}

std::string first_word(std::string_view texts) { return std::string(texts.substr(0, texts.find(' '))); }

std::string range_text(const KeySpec& spec) {
  if (spec.low == spec.high) return fmt::format("{}", spec.low);
  return fmt::format("{} to {}", spec.low, spec.high);
}

}  // namespace

class HyperReader {
 public:
  HyperReader(const gguf::Checkpoint& checkpoint, std::string_view architecture) : checkpoint_(checkpoint) {
    out_.file_ = checkpoint.label();
    out_.architecture_ = architecture;
  }

  Result<void> read(const KeySpec& spec) {
    const std::string key = fmt::format("{}.{}", out_.architecture_, spec.key);
    Hyper::Item item;
    item.present = checkpoint_.find(key) != nullptr;
    if (!item.present) {
      if (spec.need == Need::Required)
        return refuse(RefusalKind::Missing, out_.subject(spec.key),
                      fmt::format("the file has no such key, which architecture {} needs", out_.architecture_));
      set_fallback(spec, item);
    } else {
      TW_TRY_VOID(set_value(spec, key, item));
      TW_TRY_VOID(check(spec, item));
    }
    out_.items_[std::string(spec.key)] = std::move(item);
    return {};
  }

  Hyper take() && { return std::move(out_); }

 private:
  static void set_fallback(const KeySpec& spec, Hyper::Item& item) {
    if (spec.type == KeyType::Text)
      item.value = first_word(spec.texts);
    else if (spec.type == KeyType::Counts || spec.type == KeyType::Flags)
      item.value = std::vector<int64_t>{};
    else
      item.value = spec.fallback;
  }

  Result<void> set_value(const KeySpec& spec, const std::string& key, Hyper::Item& item) const {
    const bool is_array = std::holds_alternative<gguf::Array>(checkpoint_.find(key)->value.data);
    switch (spec.type) {
      case KeyType::PerLayer:
        if (is_array) return set_list(key, item);
        [[fallthrough]];
      case KeyType::Count: {
        TW_TRY(const uint64_t number, checkpoint_.get_u64(key));
        item.value = static_cast<double>(number);
        return {};
      }
      case KeyType::Real: {
        TW_TRY(item.value, checkpoint_.get_f64(key));
        return {};
      }
      case KeyType::Flag: {
        TW_TRY(const bool flag, checkpoint_.get_bool(key));
        item.value = flag ? 1.0 : 0.0;
        return {};
      }
      case KeyType::Text: {
        TW_TRY(item.value, checkpoint_.get_string(key));
        return {};
      }
      case KeyType::Counts: return set_list(key, item);
      case KeyType::Flags: return set_flags(key, item);
      case KeyType::Pattern: {
        if (is_array) return set_flags(key, item);
        TW_TRY(const uint64_t period, checkpoint_.get_u64(key));
        item.value = static_cast<double>(period);
        return {};
      }
    }
    TW_CHECK(false, "key type {}", static_cast<int>(spec.type));
  }

  Result<void> set_list(const std::string& key, Hyper::Item& item) const {
    const auto items = checkpoint_.find_i64s(key);
    if (!items) return items.refusal();
    item.value = items->value_or(std::vector<int64_t>{});
    return {};
  }

  // An array of booleans, which find_i64s does not take, or of integers.
  Result<void> set_flags(const std::string& key, Hyper::Item& item) const {
    const auto* array = std::get_if<gguf::Array>(&checkpoint_.find(key)->value.data);
    const auto* bools = array == nullptr ? nullptr : std::get_if<std::vector<bool>>(&array->items);
    if (bools == nullptr) return set_list(key, item);
    item.value = std::vector<int64_t>(bools->begin(), bools->end());
    return {};
  }

  Result<void> check(const KeySpec& spec, const Hyper::Item& item) const {
    if (const auto* text = std::get_if<std::string>(&item.value)) {
      if (text_allowed(spec.texts, *text)) return {};
      return refuse(
          RefusalKind::Unsupported, out_.subject(spec.key),
          fmt::format("the value is \"{}\"; architecture {} takes one of: {}", *text, out_.architecture_, spec.texts));
    }
    if (const auto* number = std::get_if<double>(&item.value)) return check_number(spec, *number, "");
    const auto& numbers = std::get<std::vector<int64_t>>(item.value);
    if (spec.type != KeyType::Counts) {
      const uint32_t blocks = out_.count("block_count");
      if (numbers.size() != blocks)
        return refuse(RefusalKind::Malformed, out_.subject(spec.key),
                      fmt::format("the array has {} items, and the model {} blocks", numbers.size(), blocks));
    }
    KeySpec of_item = spec;
    if (spec.type == KeyType::Pattern) of_item.high = 1;
    for (size_t i = 0; i < numbers.size(); ++i)
      TW_TRY_VOID(check_number(of_item, static_cast<double>(numbers[i]), fmt::format("item {} ", i)));
    return {};
  }

  Result<void> check_number(const KeySpec& spec, double number, std::string_view which) const {
    if (std::isfinite(number) && number >= spec.low && number <= spec.high) return {};
    if (!spec.feature.empty())
      return refuse(RefusalKind::Unsupported, out_.subject(spec.key),
                    fmt::format("{}is {}, which asks for {}; architecture {} here takes only {}", which, number,
                                spec.feature, out_.architecture_, range_text(spec)));
    return refuse(RefusalKind::Malformed, out_.subject(spec.key),
                  fmt::format("{}is {}; expected {}", which, number, range_text(spec)));
  }

  const gguf::Checkpoint& checkpoint_;
  Hyper out_;
};

std::vector<KeySpec> merged_keys(std::span<const KeyTable> tables) {
  std::vector<KeySpec> out;
  for (const KeyTable table : tables)
    for (const KeySpec& spec : table) {
      const auto same = std::find_if(out.begin(), out.end(), [&](const KeySpec& own) { return own.key == spec.key; });
      if (same == out.end())
        out.push_back(spec);
      else
        *same = spec;
    }
  return out;
}

Result<Hyper> Hyper::read(const gguf::Checkpoint& checkpoint, std::string_view architecture,
                          std::span<const KeyTable> tables) {
  HyperReader reader(checkpoint, architecture);
  for (const KeySpec& spec : merged_keys(tables)) TW_TRY_VOID(reader.read(spec));
  return std::move(reader).take();
}

std::string Hyper::subject(std::string_view key) const {
  return fmt::format("{}: key {}.{}", file_, architecture_, key);
}

const Hyper::Item& Hyper::item(std::string_view key) const {
  const auto found = items_.find(key);
  TW_CHECK(found != items_.end(), "key {} is in no table of architecture {}", key, architecture_);
  return found->second;
}

bool Hyper::has(std::string_view key) const { return item(key).present; }

uint32_t Hyper::count(std::string_view key) const { return static_cast<uint32_t>(std::get<double>(item(key).value)); }

uint32_t Hyper::count(std::string_view key, uint32_t layer) const {
  const Item& found = item(key);
  if (const auto* items = std::get_if<std::vector<int64_t>>(&found.value))
    return static_cast<uint32_t>(items->at(layer));
  return static_cast<uint32_t>(std::get<double>(found.value));
}

double Hyper::real(std::string_view key) const { return std::get<double>(item(key).value); }
bool Hyper::flag(std::string_view key) const { return std::get<double>(item(key).value) != 0; }
const std::string& Hyper::text(std::string_view key) const { return std::get<std::string>(item(key).value); }
const std::vector<int64_t>& Hyper::list(std::string_view key) const {
  return std::get<std::vector<int64_t>>(item(key).value);
}

bool Hyper::pattern(std::string_view key, uint32_t layer, uint32_t period) const {
  const Item& found = item(key);
  if (const auto* items = std::get_if<std::vector<int64_t>>(&found.value)) return items->at(layer) != 0;
  const uint32_t given = found.present ? static_cast<uint32_t>(std::get<double>(found.value)) : period;
  return given == 0 || (layer + 1) % given != 0;
}

}  // namespace tw::model
