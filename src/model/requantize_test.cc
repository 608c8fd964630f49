#include "model/requantize.h"

#include <gtest/gtest.h>

#include "gguf/temporary_folder.h"
#include "model/toy_files.h"

namespace tw::model {
namespace {

TEST(Requantize, AnInterruptionLeavesNoFile) {
  const TemporaryModel model({.architecture = "qwen3"});
  const gguf::Checkpoint checkpoint = model.open();
  const gguf::TemporaryFolder folder;
  std::atomic<bool> interrupted = false;
  uint64_t last = 0;
  const auto progress = [&](uint64_t done, uint64_t) {
    last = done;
    interrupted = done == 3;
  };
  const auto written = requantize(checkpoint, "Q4_0", folder.path() / "out.gguf", progress, &interrupted);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.refusal().kind, RefusalKind::Interrupted);
  EXPECT_EQ(last, 3U);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace tw::model
