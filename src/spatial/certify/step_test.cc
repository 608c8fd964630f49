#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/certify/certificate_json.h"
#include "spatial/certify/certify_step.h"
#include "spatial/certify/recheck.h"
#include "spatial/certify/testing.h"

namespace tw::spatial {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// y = x + 1 over one tile; `y` may be the name of x, which is then rewritten.
Program increment(std::string name, const std::string& x, const std::string& y, Init init) {
  Builder b(testing::toy_square(), Precision::F32);
  const TensorId from = b.tensor(x, TensorRole::Input, 1, 4, Precision::F32, std::move(init));
  const TensorId to = b.tensor(y, TensorRole::Output, 1, 4, Precision::F32);
  const BufferId in = b.buffer("in", 1, Precision::F32), out = b.buffer("out", 1, Precision::F32);
  b.load("load", from, {}, in);
  GenericStage add = b.compute("add", flat(4));
  const Expr value = add.read(in, at(0));
  add.write(out, value + Expr(1.0));
  b.store("store", out, to, {});
  Result<Program> section =
      std::move(b).finish({.name = std::move(name), .items = one_item(1), .claim = approx("add")});
  EXPECT_TRUE(section.ok()) << to_text(section.refusal());
  return std::move(*section);
}

// a -> b -> c, while the memory m is rewritten from a given start.
Composition step() {
  Result<Composition> all =
      compose({increment("first", "a", "b", GivenInit{}), increment("turn", "m", "m", GivenInit{}),
               increment("second", "b", "c", ExternalInit{}), increment("after", "m", "d", GivenInit{})},
              {.name = "step", .outputs = {"c"}});
  EXPECT_TRUE(all.ok()) << to_text(all.refusal());
  return std::move(*all);
}

std::vector<std::string> failures(const Composition& composed) {
  std::vector<std::string> all;
  for (const StepFailure& failure : certify(composed, testing::toy_square()).failures)
    all.push_back(to_text(composed, failure));
  return all;
}

TEST(Step, IsCertifiedAndCheckedAgain) {
  const Composition composed = step();
  const StepVerdict verdict = certify(composed, testing::toy_square());
  EXPECT_THAT(failures(composed), IsEmpty());
  EXPECT_THAT(recheck(composed, testing::toy_square(), verdict.certificate), IsEmpty());
  EXPECT_EQ(verdict.certificate.storages[index(*composed.first("m"))], (StorageEvidence{-1, 1}));
  EXPECT_EQ(verdict.certificate.storages[index(*composed.last("m"))], (StorageEvidence{1, 1}));
  const Result<StepCertificate> again = step_certificate_from_json(to_json(verdict.certificate), "file");
  ASSERT_TRUE(again.ok()) << to_text(again.refusal());
  EXPECT_EQ(*again, verdict.certificate);
}

TEST(Step, SectionsInAnotherOrderReadWhatIsNotThere) {
  Composition composed = step();
  const StepCertificate sound = certify(composed, testing::toy_square()).certificate;
  std::swap(composed.sections[0], composed.sections[2]);
  EXPECT_THAT(failures(composed), ::testing::Contains(HasSubstr("producers: section second (storage b 0): is read")));
  EXPECT_FALSE(recheck(composed, testing::toy_square(), sound).empty());
}

TEST(Step, AReadOfAStateBeforeItsUpdateIsStale) {
  Composition composed = step();
  std::swap(composed.sections[1], composed.sections[3]);
  EXPECT_THAT(failures(composed),
              ::testing::Contains(HasSubstr("versions: section after (storage m 1): uses version 1")));
}

TEST(Step, AReadOfAnEarlierVersionIsStale) {
  Composition composed = step();
  composed.sections[3].storages[0] = *composed.first("m");
  EXPECT_THAT(
      failures(composed),
      ::testing::Contains(HasSubstr("versions: section after (storage m 0): uses version 0, the current one is 1")));
}

TEST(Step, AMissingProducerIsFound) {
  Composition composed = step();
  composed.sections.erase(composed.sections.begin());
  EXPECT_THAT(failures(composed), ::testing::Contains(HasSubstr("producers: section second (storage b 0)")));
}

TEST(Step, AVersionWrittenTwiceIsFound) {
  Composition composed = step();
  composed.sections.push_back(composed.sections[0]);
  EXPECT_THAT(failures(composed), ::testing::Contains(HasSubstr("writes version 0 again, the next one is 1")));
}

TEST(Step, ATensorHeldInAStorageOfAnotherSizeIsFound) {
  Composition composed = step();
  composed.storages[index(*composed.first("b"))].cols = 5;
  EXPECT_THAT(failures(composed), ::testing::Contains(HasSubstr("b of 1x5 f32 holds b of 1x4 f32")));
  composed = step();
  composed.sections[0].storages.pop_back();
  EXPECT_THAT(failures(composed), ::testing::ElementsAre(HasSubstr("has 1 storages for 2 tensors")));
}

TEST(Step, AStateThatIsNotCarriedOnIsFound) {
  Composition composed = step();
  ASSERT_EQ(composed.carried.size(), 1U);
  composed.carried.clear();
  EXPECT_THAT(failures(composed), ::testing::ElementsAre(HasSubstr("nothing carries it to the next step")));
  composed = step();
  composed.carried[0].last = composed.carried[0].first;
  EXPECT_THAT(failures(composed), ::testing::Contains(HasSubstr("expected the last version, 1, to become the first")));
}

TEST(Step, ASectionWithoutACertificateIsNamed) {
  Composition composed = step();
  composed.sections[2].program.work.items[0].out.cols = 2;
  EXPECT_THAT(failures(composed), ::testing::Contains(HasSubstr("sections: section second: coverage")));
}

}  // namespace
}  // namespace tw::spatial
