// lower, simulate and report as a user meets them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/testing.h"

namespace tw::cli {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kMaps =
    "graph maps decode\n"
    "const a 1x4 = [2 1.3 -1 0.7]\n"
    "b = scale(x=a) factor=3\n"
    "c = activate(x=b) kind=silu\n";

// A graph file of the test's own.
class GraphFile {
 public:
  explicit GraphFile(std::string_view text = kMaps) : file_("maps.graph") { std::ofstream(file_.path()) << text; }
  [[nodiscard]] std::string path() const { return file_.path(); }

 private:
  Scratch file_;
};

TEST(Lower, ShowsFormsSectionsAndTheCertificate) {
  const GraphFile graph;
  const Ran ran = run({"lower", graph.path(), "--target", "tensix"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("scale b  whole row: 1 tile fits a page of 8"));
  EXPECT_THAT(ran.out, HasSubstr("maps decode for tensix: 2 ops as 2 sections (0 relayouts)"));
  EXPECT_THAT(ran.out, HasSubstr("certified"));
  const auto json = nlohmann::json::parse(run({"lower", graph.path(), "--target", "tensix", "--json"}).out);
  EXPECT_EQ(json["certified"], true);
  EXPECT_EQ(json["ops"].size(), 2U);
  const auto one = nlohmann::json::parse(run({"lower", graph.path(), "-T", "tensix", "--op", "c", "--json"}).out);
  EXPECT_EQ(one["ops"].size(), 1U);
}

TEST(Lower, WritesProgramsAndCertificates) {
  const GraphFile graph;
  const Scratch folder("lowered");
  const Ran ran = run({"lower", graph.path(), "--target", "targets/toy_square.toml", "-o", folder.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* file : {"step.spatial", "step.certificate.json", "0000_scale_4.spatial", "0000_scale_4.json",
                           "0001_silu_4.certificate.json"})
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(folder.path()) / file)) << file;
  std::filesystem::remove_all(folder.path());
}

TEST(Lower, SaysWhatIsWrongWithTargetGraphAndOp) {
  const GraphFile graph, wrong("graph g decode\nconst a 1x4\nb = scale(y=a) factor=3\n");
  const auto refused = [&](const std::vector<std::string>& arguments, int code, const std::string& text) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, code) << text;
    EXPECT_THAT(ran.err, HasSubstr(text));
    EXPECT_EQ(ran.out, "");
  };
  for (const std::string verb : {"lower", "simulate"}) {
    refused({verb, graph.path(), "--target", "tensor"}, 1, "tensor: there is no such target");
    refused({verb, graph.path(), "--target", "tensor"}, 1, "Known are fabric, rdu, scalar, tensix");
    refused({verb, graph.path(), "--target", "nowhere.toml"}, 1, "nowhere.toml: cannot be opened");
    refused({verb, graph.path()}, 2, "--target: is missing");
    refused({verb, "nowhere.graph", "--target", "tensix"}, 1, "nowhere.graph: cannot be opened for reading");
    refused({verb, graph.path(), "-c", "8", "--target", "tensix"}, 2, "--ctx-size: is for models");
  }
  refused({"lower", wrong.path(), "--target", "tensix"}, 1, wrong.path() + ": line 3, column 11");
  refused({"lower", graph.path(), "--target", "tensix", "--op", "d"}, 2, "d: is no result of an op of maps");
  refused({"lower", graph.path(), "--target", "tensix", "--form", "decode"}, 2, "--form: is for models");
  refused({"report", graph.path(), "--target", "tensix"}, 2, "-o: is missing");
  refused({"report", graph.path(), "--target", "tensix", "-o", "/nowhere/page.html"}, 1, "/nowhere/page.html: ");
}

TEST(Simulate, ComparesWithTheDefinitionAndSaysWhere) {
  const GraphFile graph;
  const Ran ran = run({"simulate", graph.path(), "--target", "tensix", "--every"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("maps decode: 2 sections"));
  EXPECT_THAT(ran.out, HasSubstr("op 0 scale b: "));
  EXPECT_THAT(ran.out, HasSubstr("worst     op "));
  const auto json = nlohmann::json::parse(run({"simulate", graph.path(), "--target", "tensix", "--json"}).out);
  EXPECT_EQ(json["same_choices"], true);
  EXPECT_EQ(json["steps"][0]["differences"].size(), 2U);
}

TEST(Simulate, AsksForTokensWhereTheGraphDoes) {
  const GraphFile graph(
      "graph g decode\nparam tokens 1\nparam position 1\n"
      "const t 5x4 i32 = [1 2 3 4; 9 9 9 9; 0 1 2 0; 4 3 2 1; 5 0 0 6]\n"
      "logits = rows_gather(table=t, index=tokens)\nnext = argmax(x=logits)\n"
      "io tokens=tokens\nio sequence position=position logits=logits next=next\n");
  const std::vector<std::string> start{"simulate", graph.path(), "--target", "toy_square"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = start;
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  const Ran none = with({});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("tokens: none were given"));
  EXPECT_EQ(with({"-p", "text"}).code, 2);
  EXPECT_EQ(with({"--tokens", "0"}).code, 2);
  EXPECT_EQ(with({"--tokens", "1", "--chunk", "0"}).code, 2);
  EXPECT_EQ(with({"--tokens", "1", "--chunk", "513"}).code, 2);
  const Ran past = with({"--tokens", "6"});
  EXPECT_EQ(past.code, 1);
  EXPECT_THAT(past.err, HasSubstr("tokens"));
  EXPECT_THAT(past.err, HasSubstr("6"));
  const Ran fine = with({"--tokens", "1,3", "--steps", "1"});
  EXPECT_EQ(fine.code, 0) << fine.err;
  EXPECT_THAT(fine.out, HasSubstr("next      4, as defined"));
  EXPECT_THAT(fine.out, HasSubstr("g decode, position 3: "));
  EXPECT_THAT(fine.out, HasSubstr("every result and state is equal"));
}

TEST(Report, WritesOnePage) {
  const GraphFile graph;
  const Scratch file("page.html");
  const Ran ran = run({"report", graph.path(), "--target", "tensix", "-o", file.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("certified"));
  const std::string page = read_file(file.path());
  EXPECT_EQ(page.substr(0, 15), "<!DOCTYPE html>");
  EXPECT_NE(page.find("scale_4"), std::string::npos);
}

}  // namespace
}  // namespace tw::cli
