#include "spatial/certify/certify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expect_good.h"
#include "spatial/builder.h"
#include "spatial/certify/certificate_json.h"
#include "spatial/certify/interval.h"
#include "spatial/certify/recheck.h"
#include "spatial/certify/testing.h"

namespace tw::spatial {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string texts(const Program& program, const std::vector<CheckFailure>& failures) {
  std::string all;
  for (const CheckFailure& failure : failures) all += to_text(program, failure) + "\n";
  return all;
}

std::vector<Program> valid_programs() {
  std::vector<Program> all;
  for (Result<Program> section :
       {testing::flat_add(testing::toy_square(), 7), testing::flat_add(testing::toy_square(), 8),
        testing::row_sum_fold(testing::toy_square(), 5, false), testing::row_sum_fold(testing::toy_square(), 1, false),
        testing::row_sum_fold(testing::toy_square(), 5, true), testing::tile_gather(testing::toy_square(), 100),
        testing::streamed_product(testing::toy_square(), 3, 2, 4), testing::chunked_add(testing::toy_square(), 3, 4),
        testing::chunked_add(testing::toy_square(), 2, 1), testing::row_update(testing::toy_square(), 6, 3),
        testing::state_chunks(testing::toy_square(), 2, 3), testing::two_results(testing::toy_square(), 13),
        testing::join(testing::toy_square(), 4), testing::join(testing::toy_square(), 3),
        testing::element_gather(testing::toy_square(), 3, 5), testing::checked_fold(testing::toy_square(), 4),
        testing::many_adds(testing::toy_square(), 3, 4)})
    all.push_back(good(std::move(section)));
  return all;
}

TEST(Interval, SaturatesInsteadOfWrapping) {
  const Interval large{kMost - 1, kMost};
  EXPECT_EQ(large + large, (Interval{kMost, kMost}));
  EXPECT_EQ(-Interval({kLeast, 3}), (Interval{-3, kMost}));
  EXPECT_EQ((Interval{-2, 3} * Interval{-5, 4}), (Interval{-15, 12}));
  EXPECT_EQ(floor_quotient(-1, 4), -1);
  EXPECT_EQ(floor_quotient(-4, 4), -1);
  EXPECT_EQ(floor_quotient(7, 4), 1);
}

// Data says how many columns of four read a page of two elements. That no index brings the last column into the page is
// nothing against it.
TEST(Certify, AReadThatDataBoundsNeedNotReachItsEnds) {
  const Target target = testing::toy_target({1, 1}, 4);
  const auto section = [&](int64_t base) {
    Builder b(target, Precision::I32);
    const TensorId t = b.tensor("t", TensorRole::Input, 1, 2, Precision::I32, GivenInit{});
    const TensorId y = b.tensor("y", TensorRole::Output, 1, 4, Precision::I32);
    const TensorId numbers = b.scalar_table("numbers", Precision::I32, {0, 2});
    const BufferId in_t = b.buffer("in_t", 2, Precision::I32), out = b.buffer("out", 4, Precision::I32);
    const BufferId first = b.buffer("first", 1, Precision::I32), past = b.buffer("past", 1, Precision::I32);
    b.load("load_t", t, {}, in_t);
    b.load("load_first", numbers, {}, first);
    b.load("load_past", numbers, {.base = 1}, past);
    GenericStage stage = b.compute("part", flat(4));
    const uint32_t by = stage.operand(first, fixed(0)), end = stage.operand(past, fixed(0));
    const Expr value = stage.read(in_t, at(base).plus(by, 1, 3));
    stage.write(out, select(less_than_operand(Axis::Col, end), value, 0.0));
    b.store("store_y", out, y, {});
    return good(std::move(b).finish({.name = "part", .items = one_item(4), .claim = exact()}));
  };
  const Program inside = section(0), outside = section(2);
  EXPECT_TRUE(certify(inside, target).ok()) << texts(inside, certify(inside, target).failures);
  // What reads nothing inside anywhere is still refused.
  EXPECT_THAT(texts(outside, certify(outside, target).failures), HasSubstr("reads elements 2 to"));
}

TEST(Certify, TheTableIsTheListOfChecks) {
  ASSERT_EQ(certificate_checks().size(), kCertificateChecks.size());
  for (size_t i = 0; i < kCertificateChecks.size(); ++i) {
    EXPECT_EQ(certificate_checks()[i].name, kCertificateChecks[i]);
    EXPECT_FALSE(certificate_checks()[i].claim.empty());
  }
}

TEST(Certify, CertifiesValidProgramsAndTheSmallCheckerAgrees) {
  for (const Program& program : valid_programs()) {
    SCOPED_TRACE(program.name);
    const Verdict verdict = certify(program, testing::toy_square());
    EXPECT_TRUE(verdict.ok()) << texts(program, verdict.failures);
    EXPECT_THAT(recheck(program, testing::toy_square(), verdict.certificate), IsEmpty());
  }
}

TEST(Certify, SaysWhatItCounted) {
  const Program chunks = good(testing::chunked_add(testing::toy_square(), 3, 4));
  const Certificate c = certify(chunks, testing::toy_square()).certificate;
  EXPECT_EQ(c.footprint, 3U * 2 * 16 * 2);
  EXPECT_EQ(c.widest_computed_page, 1U);
  ASSERT_EQ(c.edges.size(), 3U);
  EXPECT_EQ(c.edges[1].pushes, 4U);  // the one row, loaded again for each of the sub-blocks
  EXPECT_EQ(c.edges[1].pops, 4U);
  EXPECT_EQ(c.moves[0], (MoveEvidence{StageId{0}, 0, 11}));
  EXPECT_EQ(c.moves[1], (MoveEvidence{StageId{1}, 0, 0}));
  EXPECT_EQ(c.results, (std::vector{ResultEvidence{TensorId{2}, 12, 12}}));
  const Program fold = good(testing::row_sum_fold(testing::toy_square(), 5, false));
  const Certificate carried = certify(fold, testing::toy_square()).certificate;
  for (const EdgeEvidence& edge : carried.edges)
    if (fold.at(edge.buffer).name == "run_sum") {
      EXPECT_EQ(edge.pushes, 6U);  // the start and five updates
    }
  EXPECT_EQ(carried.buffers[3].high_water, 2U);  // the update reads the old page
}

TEST(Certify, AStateKeepsWhatIsNotAddressed) {
  const Program update = good(testing::row_update(testing::toy_square(), 6, 3));
  const Certificate c = certify(update, testing::toy_square()).certificate;
  EXPECT_EQ(c.results, (std::vector{ResultEvidence{TensorId{0}, 3, 18}}));
}

TEST(Certify, AnIndexThatOnlyTheRunChecksIsSaidToBe) {
  const Program gather = good(testing::element_gather(testing::toy_square(), 3, 5));
  const Certificate c = certify(gather, testing::toy_square()).certificate;
  const auto table = std::find_if(c.reads.begin(), c.reads.end(), [&](const ReadEvidence& read) {
    return gather.at(read.stage).name == "gather" && read.operand == 1;
  });
  ASSERT_NE(table, c.reads.end());
  EXPECT_EQ(table->first, 0);
  EXPECT_EQ(table->last, 4);  // the columns of a row; the offset is data
}

// y = 1 up to the column that a counter of `blocks` blocks, `step` more each, reaches.
Program counted_columns(uint64_t blocks, double step) {
  Builder b(testing::toy_square(), Precision::F32);
  const TensorId y = b.tensor("y", TensorRole::Output, 1, 4, Precision::Bf16);
  const BufferId counter = b.scratch("counter", 1, Precision::I8), out = b.buffer("out", 1, Precision::Bf16);
  b.level(FoldLevel::Prologue);
  b.compute("start", flat(1)).write(counter, 0.0);
  b.level(FoldLevel::Body);
  GenericStage next = b.compute("next", flat(1));
  const Expr before = next.read(counter, fixed(0));
  next.write(counter, before + step);
  b.level(FoldLevel::Epilogue);
  GenericStage ones = b.compute("ones", flat(4));
  const uint32_t end = ones.operand(counter, fixed(0));
  ones.write(out, select(less_than_operand(Axis::Col, end), 1.0, 0.0));
  b.store("store_y", out, y, {});
  Section section{.name = "counted_columns", .items = one_item(1), .claim = exact()};
  section.plan = BlockPlan{.num_blocks = blocks};
  section.k_tiles = blocks;
  return good(std::move(b).finish(std::move(section)));
}

TEST(Certify, ACounterOfBlocksIsWhatTheyAddUpTo) {
  for (const auto& [blocks, step, fits] : {std::tuple{127, 1.0, true},
                                           {128, 1.0, false},
                                           {31, 4.0, true},
                                           {32, 4.0, false},
                                           {42, -3.0, true},
                                           {43, -3.0, false}}) {
    const Program program = counted_columns(static_cast<uint64_t>(blocks), step);
    EXPECT_EQ(certify(program, testing::toy_square()).ok(), fits) << blocks << " blocks of " << step;
  }
}

// y = row i of the table up to column i - 4: the index is loaded twice, and only the gather's copy is bounded.
Program cut_gather(bool same_index) {
  Builder b(testing::toy_square(), Precision::F32);
  const TensorId table = b.tensor("table", TensorRole::Param, 1, 400, Precision::Bf16, GivenInit{});
  const TensorId i = b.tensor("i", TensorRole::Input, 1, 1, Precision::I8, GivenInit{});
  const TensorId other = same_index ? i : b.tensor("j", TensorRole::Input, 1, 1, Precision::I8, GivenInit{});
  const TensorId y = b.tensor("y", TensorRole::Output, 1, 4, Precision::Bf16);
  const BufferId in_row = b.buffer("in_row", 1, Precision::I8), row = b.buffer("row", 1, Precision::I8);
  const BufferId in_end = b.buffer("in_end", 1, Precision::I8), end = b.scratch("end", 1, Precision::I8);
  const BufferId in = b.buffer("in", 1, Precision::Bf16), out = b.buffer("out", 1, Precision::Bf16);
  b.load("load_row", i, {}, in_row);
  GenericStage minus = b.compute("row", flat(1));
  const Expr one_based = minus.read(in_row, fixed(0));
  minus.write(row, one_based - Expr(1.0));
  b.load("load_end", other, {}, in_end);
  GenericStage less_four = b.compute("end", flat(1));
  const Expr given = less_four.read(in_end, fixed(0));
  less_four.write(end, given - Expr(4.0));
  b.load("gather", table, {.indirect = IndirectTile{.index = row, .high = 99}}, in);
  GenericStage cut = b.compute("cut", flat(4));
  const Expr value = cut.read(in, at(0));
  const uint32_t bound = cut.operand(end, fixed(0));
  cut.write(out, select(less_than_operand(Axis::Col, bound), value, 0.0));
  b.store("store", out, y, {});
  return good(std::move(b).finish({.name = "cut_gather", .items = one_item(1), .claim = exact()}));
}

TEST(Certify, ABoundOnOneCopyOfAnIndexHoldsForTheOthers) {
  const Program same = cut_gather(true);
  EXPECT_EQ(texts(same, certify(same, testing::toy_square()).failures), "");
  const Program other = cut_gather(false);
  EXPECT_EQ(texts(other, certify(other, testing::toy_square()).failures),
            "indices: stage end (buffer end): makes indices of -132 to 123, an i8 holds -128 to 127\n");
}

TEST(Certify, ProductsOfRealTargetsAreCertified) {
  const Target tensix = testing::shipped_target("tensix");
  const Program product = good(testing::streamed_product(tensix, 4, 3, 5));
  const Verdict verdict = certify(product, tensix);
  EXPECT_TRUE(verdict.ok()) << texts(product, verdict.failures);
  EXPECT_THAT(recheck(product, tensix, verdict.certificate), IsEmpty());
}

TEST(Certify, AProgramWithoutSoundIdsGetsItsFindingsAlone) {
  Program add = good(testing::flat_add(testing::toy_square(), 7));
  add.stages[2].ins[0] = BufferId{77};
  const Verdict verdict = certify(add, testing::toy_square());
  ASSERT_EQ(verdict.failures.size(), 1U);
  EXPECT_EQ(verdict.failures[0].check, "structure");
  EXPECT_THAT(verdict.failures[0].text, HasSubstr("has buffer 77, the program has 3 (S3)"));
}

TEST(Certify, ARefusalNamesTheResultAndTheFirstFailure) {
  Program add = good(testing::flat_add(testing::toy_square(), 7));
  Target small = testing::toy_square();
  small.local_bytes = 383;
  const Result<Certificate> refused = certificate_of(add, small);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.refusal().subject, "c");
  EXPECT_THAT(
      refused.refusal().reason,
      HasSubstr("needs 384 bytes, 1 more than the 383 of a site of toy_square; the largest: in_a 2 pages of 64"));
}

// ---- the file ----

TEST(CertificateFile, RoundTrips) {
  for (const Program& program : valid_programs()) {
    const Certificate certificate = certify(program, testing::toy_square()).certificate;
    const Result<Certificate> again = certificate_from_json(to_json(certificate), "file");
    ASSERT_TRUE(again.ok()) << to_text(again.refusal());
    EXPECT_EQ(*again, certificate);
  }
}

TEST(CertificateFile, IsWrittenAndRead) {
  const Certificate certificate =
      certify(good(testing::flat_add(testing::toy_square(), 7)), testing::toy_square()).certificate;
  const std::string path = ::testing::TempDir() + "certificate_test.json";
  ASSERT_TRUE(write_certificate(certificate, path).ok());
  const Result<Certificate> again = read_certificate(path);
  ASSERT_TRUE(again.ok()) << to_text(again.refusal());
  EXPECT_EQ(*again, certificate);
  EXPECT_FALSE(read_certificate(path + ".not_there").ok());
  EXPECT_FALSE(write_certificate(certificate, "/not/there/at_all.json").ok());
}

TEST(CertificateFile, RefusesWhatIsNoCertificate) {
  const std::string text =
      to_json(certify(good(testing::flat_add(testing::toy_square(), 7)), testing::toy_square()).certificate);
  const auto reason = [](const std::string& bad) {
    const Result<Certificate> read = certificate_from_json(bad, "file");
    return read.ok() ? std::string("accepted") : read.refusal().reason;
  };
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  EXPECT_EQ(reason("{"), "is no JSON object");
  EXPECT_EQ(reason("[]"), "is no JSON object");
  EXPECT_THAT(reason(with("certificate 1", "certificate 2")), HasSubstr("is not of the format"));
  EXPECT_EQ(reason(with("\"footprint\"", "\"feetprint\"")), "footprint is missing");
  EXPECT_EQ(reason(with("\"footprint\": 384", "\"footprint\": -1")), "footprint is not a number of 64 bits");
  EXPECT_EQ(reason(with("\"depth\": 2", "\"depth\": 4294967296")), "buffers[0].depth is not a number of 32 bits");
  EXPECT_EQ(reason(with("\"footprint\"", "\"more\": 1, \"footprint\"")), "the object has 15 fields, expected 14");
}

// ---- the small checker ----

TEST(Recheck, RejectsTheCertificateOfAnotherProgram) {
  const Program seven = good(testing::flat_add(testing::toy_square(), 7));
  Program other = seven;
  other.stages[2].name = "plus";
  const Certificate certificate = certify(seven, testing::toy_square()).certificate;
  EXPECT_THAT(recheck(other, testing::toy_square(), certificate),
              ::testing::ElementsAre(HasSubstr("the fingerprint is")));
  Target larger = testing::toy_square();
  larger.local_bytes += 1;
  EXPECT_THAT(recheck(seven, larger, certificate), ::testing::ElementsAre(HasSubstr("the local memory is")));
}

// Every number of the file, one after the other, made one larger; every truth turned over.
TEST(Recheck, RejectsEveryAlteredNumber) {
  for (const Program& program : valid_programs()) {
    SCOPED_TRACE(program.name);
    const std::string text = to_json(certify(program, testing::toy_square()).certificate);
    size_t altered = 0;
    for (size_t at = text.find("\": "); at != std::string::npos; at = text.find("\": ", at + 1)) {
      const size_t from = at + 3;
      std::string changed = text;
      if (text.compare(from, 4, "true") == 0) {
        changed.replace(from, 4, "false");
      } else if (text.compare(from, 5, "false") == 0) {
        changed.replace(from, 5, "true");
      } else if (const size_t end = text.find_first_not_of("-0123456789", from); end > from) {
        changed.replace(from, end - from, std::to_string(std::stoll(text.substr(from, end - from)) + 1));
      } else {
        continue;
      }
      const Result<Certificate> read = certificate_from_json(changed, "file");
      ASSERT_TRUE(read.ok()) << to_text(read.refusal());
      EXPECT_FALSE(recheck(program, testing::toy_square(), *read).empty()) << text.substr(at < 40 ? 0 : at - 40, 60);
      ++altered;
    }
    EXPECT_GT(altered, 20U);
  }
}

TEST(Recheck, RejectsAListCutShort) {
  const Program program = good(testing::two_results(testing::toy_square(), 13));
  const Certificate whole = certify(program, testing::toy_square()).certificate;
  const auto rejected = [&](auto change) {
    Certificate changed = whole;
    change(changed);
    return !recheck(program, testing::toy_square(), changed).empty();
  };
  EXPECT_TRUE(rejected([](Certificate& c) { c.checks.pop_back(); }));
  EXPECT_TRUE(rejected([](Certificate& c) { c.buffers.pop_back(); }));
  EXPECT_TRUE(rejected([](Certificate& c) { c.edges.pop_back(); }));
  EXPECT_TRUE(rejected([](Certificate& c) { c.moves.pop_back(); }));
  EXPECT_TRUE(rejected([](Certificate& c) { c.results.pop_back(); }));
  EXPECT_TRUE(rejected([](Certificate& c) { c.reads.pop_back(); }));
}

}  // namespace
}  // namespace tw::spatial
