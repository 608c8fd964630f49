// The graphs of examples/ that are written by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "graph/evaluate.h"
#include "graph/text.h"
#include "graph/verify.h"

namespace tw::graph {
namespace {

using ::testing::HasSubstr;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Examples, AnInt8ModelWrittenByHand) {
  const Result<ParsedGraph> model = parse(read_file("examples/int8_mlp.graph"), "examples/int8_mlp.graph");
  ASSERT_TRUE(model.ok()) << to_text(model.refusal());
  for (const Finding& finding : verify(model->graph)) ADD_FAILURE() << to_text(model->graph, finding);

  // Worked out with plain integer arithmetic, token by token.
  struct Expected {
    int32_t token;
    std::vector<double> hidden, logits;
    double next;
  };
  const Expected steps[] = {
      {1, {19, 0, 0, 96}, {6349, -2234, -3382}, 1},
      {2, {0, 45, 0, 0}, {-3465, 900, 2025}, 3},
      {3, {13, 0, 125, 0}, {1403, 5819, -3443}, 2},
  };
  Environment environment = make_environment(model->constants);
  for (const Expected& expected : steps) {
    ASSERT_TRUE(set_inputs(model->graph, environment, std::vector{expected.token}, std::vector<uint32_t>{1}).ok());
    const Result<void> done = evaluate(model->graph, environment);
    ASSERT_TRUE(done.ok()) << to_text(done.refusal());
    EXPECT_EQ(environment.values["hidden"], expected.hidden);
    EXPECT_EQ(environment.values["logits"], expected.logits);
    EXPECT_EQ(environment.values["next"], std::vector{expected.next});
  }
}

// docs/graph.md shows the example as it prints, so that the page cannot fall behind the text form.
TEST(Examples, ThePageShowsWhatPrints) {
  const Result<ParsedGraph> model = parse(read_file("examples/int8_mlp.graph"), "examples/int8_mlp.graph");
  ASSERT_TRUE(model.ok()) << to_text(model.refusal());
  EXPECT_THAT(read_file("docs/graph.md"), HasSubstr("```\n" + print(model->graph, model->constants) + "```\n"));
}

// The page's tables name every op and every finding.
TEST(Examples, ThePageNamesEveryOpAndFinding) {
  const std::string page = read_file("docs/graph.md");
  const auto ops = []<size_t... I>(std::index_sequence<I...>) {
    return std::vector<OpSpec>{OpSpec(std::in_place_index<I>)...};
  }
  (std::make_index_sequence<std::variant_size_v<OpSpec>>{});
  for (const OpSpec& op : ops) {
    EXPECT_THAT(page, HasSubstr(std::string("| `") + std::string(op_name(op)) + "` |"));
  }
  for (const FindingCode& code : finding_codes())
    EXPECT_THAT(
        page, HasSubstr(std::string("| ") + std::string(code.code) + " | " +
                        (code.severity == Severity::Error ? "error" : "warning") + " | " + std::string(code.meaning)));
}

}  // namespace
}  // namespace tw::graph
