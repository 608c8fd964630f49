// The page and the listing of a lowered step: what they say, and that the page needs nothing but itself.

#include "spatial/step/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "graph/text.h"
#include "spatial/certify/certificate_json.h"
#include "spatial/certify/recheck.h"
#include "spatial/lower/testing/op_case.h"
#include "spatial/step/listing.h"
#include "spatial/step/markup.h"
#include "spatial/text.h"

namespace tw::spatial::step {
namespace {

using ::testing::HasSubstr;

Examined examined() {
  const Result<graph::ParsedGraph> graph = graph::parse(
      "graph maps decode\nconst a 1x20\nconst m 6x5\n\"b<1>\" = scale(x=a) factor=2\nc = activate(x=m) kind=silu\n",
      "test");
  EXPECT_TRUE(graph.ok()) << to_text(graph.refusal());
  Result<Examined> step = examine(graph->graph, lower::testing::t4());
  EXPECT_TRUE(step.ok()) << to_text(step.refusal());
  return std::move(*step);
}

// A whole page is not to be printed when it lacks something.
bool contains(const std::string& html, std::string_view part) { return html.find(part) != std::string::npos; }

// Every element that is opened is closed, in order, and the only ones without an end are those that have none.
void expect_nested(const std::string& html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = html.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" /", 1) - (tag[0] == '/' ? 1 : 0));
    if (tag[0] == '!' || name == "meta" || tag.back() == '/') continue;
    if (tag[0] != '/') {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << "</" << name << ">";
    ASSERT_EQ(open.back(), name) << html.substr(at > 200 ? at - 200 : 0, 220);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST(Page, IsOneDocumentThatNeedsNothingElse) {
  const std::string html = page(examined());
  expect_nested(html);
  for (const std::string_view outside : {"http:", "https:", "src=", "href=", "<script", "@import", "url("})
    EXPECT_FALSE(contains(html, outside)) << outside;
  EXPECT_FALSE(contains(html, "b<1>"));
}

TEST(Page, SaysFormSitesBuffersEdgesAndChecks) {
  const std::string html = page(examined());
  for (const std::string_view part :
       {"maps decode for toy_4x4", "b&lt;1&gt;", "5 tiles exceed a page of 2", "5 items", "site 1, 1: 1 item", "in_x",
        "bytes a page", "most at a time", "1 tile bf16", "pages an item", "liveness", "holds", "program scale_20",
        "2 ops as 2 sections (0 relayouts)"})
    EXPECT_TRUE(contains(html, part)) << part;
  EXPECT_FALSE(contains(html, "not certified"));
}

TEST(Page, ShowsWhatHasNoCertificate) {
  Examined roomy = examined();
  const Examined step = examine(std::move(roomy.graph), std::move(roomy.lowered), lower::testing::t4_with(64));
  ASSERT_FALSE(step.verdict.ok());
  const std::string html = page(step);
  expect_nested(html);
  EXPECT_TRUE(contains(html, "not certified"));
  EXPECT_TRUE(contains(html, "local memory: "));
  EXPECT_THAT(listing(step), HasSubstr("NOT CERTIFIED"));
  EXPECT_EQ(listing_json(step)["certified"], false);
}

TEST(Page, MarkupIsEscapedAndNumbersReadWell) {
  EXPECT_EQ(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(counted(1, "tile"), "1 tile");
  EXPECT_EQ(counted(0, "tile"), "0 tiles");
  EXPECT_THAT(bar(3, 2, "x"), HasSubstr("over"));
  Target wide = lower::testing::t4();
  wide.site_rows = wide.site_cols = 1000;
  EXPECT_LT(site_grid(wide, {{999, 999, 0, 3}}).size(), 300000U);
  EXPECT_THAT(site_grid(wide, {{999, 999, 0, 3}}), HasSubstr("site 992, 992: 3 items"));
}

TEST(Listing, CountsItemsSitesMemoryAndTiles) {
  const Examined step = examined();
  EXPECT_EQ(step.figures[0].items, 5U);
  EXPECT_EQ(step.figures[0].tiles_loaded, 5U);
  EXPECT_EQ(step.figures[0].tiles_stored, 5U);
  EXPECT_EQ(step.figures[0].bytes_loaded, 5U * 16 * 2);
  const auto json = listing_json(step);
  EXPECT_EQ(json["ops"][0]["result"], "b<1>");
  EXPECT_EQ(json["ops"][0]["sections"][0]["sites"], 5);
  EXPECT_EQ(json["ops"][1]["form"], "matrix");
  EXPECT_EQ(json["certified"], true);
  EXPECT_EQ(json["tiles_loaded"], 5 + 4);
}

TEST(Listing, FilesReadBackAndPassTheSmallChecker) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("tilewright-listing-{}", getpid());
  const Examined step = examined();
  const Result<void> written = write_files(step, folder);
  ASSERT_TRUE(written.ok()) << to_text(written.refusal());
  std::map<std::string, uint64_t> kinds;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) ++kinds[entry.path().extension()];
  EXPECT_EQ(kinds[".spatial"], 3U);
  EXPECT_EQ(kinds[".json"], 5U);
  const Result<StepCertificate> certificate = read_step_certificate(folder / "step.certificate.json");
  ASSERT_TRUE(certificate.ok()) << to_text(certificate.refusal());
  std::ifstream file(folder / "step.spatial");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Result<Composition> read = parse_composition(text, "step.spatial");
  ASSERT_TRUE(read.ok()) << to_text(read.refusal());
  EXPECT_TRUE(*read == step.lowered.composition);
  EXPECT_TRUE(recheck(*read, step.target, *certificate).empty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tw::spatial::step
