#pragma once

// The hyperparameters of a checkpoint: a family lists its metadata keys in a table, and the table is walked to read and
// check them. A key that is missing, of another type or out of range is refused, naming file, key, found and expected.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"

namespace tw::model {

enum class KeyType : uint8_t {
  Count,     // an unsigned integer
  PerLayer,  // one unsigned integer, or an array of one a block
  Counts,    // an array of integers
  Flags,     // an array of booleans or integers, one a block
  Pattern,   // Flags, or one unsigned integer: a period
  Real,
  Flag,
  Text,
};

enum class Need : uint8_t { Required, Optional };

struct KeySpec {
  std::string_view key;  // follows "<architecture>." in the file
  KeyType type = KeyType::Count;
  Need need = Need::Optional;
  double fallback = 0;  // of an absent optional number or flag
  double low = 0;       // range of a number; a flag's must be a value between them (false 0, true 1)
  double high = 4294967295.0;
  std::string_view texts = {};    // of Text: the values that are taken, separated by spaces; the first is the fallback
  std::string_view feature = {};  // when set, a value out of range is the use of this unsupported feature
};

using KeyTable = std::span<const KeySpec>;

// The rows of all tables. Of rows with one key the last counts, so that a family overrides what the shared tables say.
std::vector<KeySpec> merged_keys(std::span<const KeyTable> tables);

class Hyper {
 public:
  // Reads every key of the tables. `layers` (from block_count) is how long per-layer arrays must be.
  static Result<Hyper> read(const gguf::Checkpoint& checkpoint, std::string_view architecture,
                            std::span<const KeyTable> tables);

  // The file and the full name of a key, for messages.
  [[nodiscard]] std::string subject(std::string_view key) const;
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& architecture() const { return architecture_; }

  // Whether the file has the key. The getters give the fallback of an absent one.
  // Require: the key is in a table, with that type.
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] uint32_t count(std::string_view key) const;
  [[nodiscard]] uint32_t count(std::string_view key, uint32_t layer) const;
  [[nodiscard]] double real(std::string_view key) const;
  [[nodiscard]] bool flag(std::string_view key) const;
  [[nodiscard]] const std::string& text(std::string_view key) const;
  [[nodiscard]] const std::vector<int64_t>& list(std::string_view key) const;  // empty when absent
  // Of a Pattern: whether the layer is set. A period p sets every layer but each p-th, 0 all of them; `period` stands
  // for an absent one.
  [[nodiscard]] bool pattern(std::string_view key, uint32_t layer, uint32_t period) const;

 private:
  struct Item {
    bool present = false;
    std::variant<double, std::string, std::vector<int64_t>> value;
  };
  [[nodiscard]] const Item& item(std::string_view key) const;

  std::string file_;
  std::string architecture_;
  std::map<std::string, Item, std::less<>> items_;

  friend class HyperReader;
};

}  // namespace tw::model
