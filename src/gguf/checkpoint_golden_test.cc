// Real checkpoints, by other writers: the shipped model, the golden models of the repository, and the further ones of
// TW_GOLDEN_DIR when it is there.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gguf/checkpoint.h"

namespace tw::gguf {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_under(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> files;
  if (fs::is_directory(folder))
    for (const auto& item : fs::recursive_directory_iterator(folder))
      if (item.path().filename().string().ends_with(ending)) files.push_back(item.path());
  std::ranges::sort(files);
  return files;
}

fs::path further_goldens() {
  const char* folder = std::getenv("TW_GOLDEN_DIR");
  return folder ? folder : "../shared/golden";
}

void expect_readable(const fs::path& path) {
  SCOPED_TRACE(path.string());
  const auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint.ok()) << to_text(checkpoint.refusal());
  EXPECT_EQ(checkpoint->file_bytes(), fs::file_size(path));
  EXPECT_FALSE(checkpoint->entries().empty());
  EXPECT_TRUE(checkpoint->get_string("general.architecture").ok());
  uint64_t end = 0;
  for (const TensorInfo& tensor : checkpoint->tensors()) {
    ASSERT_EQ(checkpoint->find_tensor(tensor.name), &tensor);
    ASSERT_EQ(checkpoint->bytes(tensor).size(), tensor.rows() * tensor.row_bytes());
    end = std::max(end, tensor.offset + tensor.bytes);
  }
  // Nothing but padding may follow the last tensor, or its place was misread.
  if (end > 0) {
    EXPECT_LT(fs::file_size(path) - end, checkpoint->alignment());
  }
}

// What golden.json says of a model beside it.
void expect_as_described(const fs::path& description) {
  SCOPED_TRACE(description.string());
  const nlohmann::json golden = nlohmann::json::parse(std::ifstream(description));
  const auto checkpoint = Checkpoint::open(description.parent_path() / "model.gguf");
  ASSERT_TRUE(checkpoint.ok()) << to_text(checkpoint.refusal());
  EXPECT_EQ(checkpoint->get_string("general.architecture").value(), golden["architecture"].get<std::string>());
  EXPECT_EQ(checkpoint->file_bytes(), golden["file_bytes"].get<uint64_t>());
  EXPECT_EQ(checkpoint->find_strings("tokenizer.ggml.tokens").value().value().size(), golden["n_vocab"].get<size_t>());
  std::map<std::string, int> types;
  for (const TensorInfo& tensor : checkpoint->tensors()) ++types[std::string(name(tensor.format))];
  EXPECT_EQ(nlohmann::json(types), golden["tensor_types"]);
}

TEST(RealCheckpoints, OfTheRepositoryRead) {
  std::vector<fs::path> files = files_under("models", ".gguf");
  EXPECT_FALSE(files.empty());
  for (const fs::path& path : files) expect_readable(path);
  files = files_under("tests/golden", ".gguf");
  EXPECT_FALSE(files.empty());
  for (const fs::path& path : files) expect_readable(path);
}

TEST(RealCheckpoints, HoldWhatTheirDescriptionSays) {
  const std::vector<fs::path> descriptions = files_under("tests/golden", "golden.json");
  EXPECT_FALSE(descriptions.empty());
  for (const fs::path& description : descriptions) expect_as_described(description);
}

TEST(RealCheckpoints, OfTheGoldenFolderRead) {
  const std::vector<fs::path> files = files_under(further_goldens(), ".gguf");
  if (files.empty()) GTEST_SKIP() << "no checkpoints in " << further_goldens() << "; TW_GOLDEN_DIR names the folder";
  for (const fs::path& path : files) expect_readable(path);
}

}  // namespace
}  // namespace tw::gguf
