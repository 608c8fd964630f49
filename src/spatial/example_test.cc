// The worked example of docs/spatial-ir.md is a program, and the one that the builder writes.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "spatial/testing.h"
#include "spatial/text.h"
#include "spatial/validate.h"

namespace tw::spatial {
namespace {

std::string example_of_the_page() {
  std::ifstream file("docs/spatial-ir.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const size_t begin = text.find("```\nprogram l2norm_2x4");
  const size_t end = text.find("\n```", begin + 1);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return text.substr(begin + 4, end - begin - 3);
}

Result<Program> l2norm(const Target& target) {
  constexpr Precision kElement = Precision::Bf16;
  const auto tw = static_cast<int64_t>(target.tile.cols);
  Builder b(target, Precision::F32);
  const TensorId x = b.tensor("x", TensorRole::Input, 1, 8, kElement, GivenInit{});
  const TensorId ones = b.ones("row_scaler", kElement);
  const TensorId y = b.tensor("y", TensorRole::Output, 1, 8, kElement);
  const BufferId in_x = b.buffer("in_x", 2, kElement), in_scaler = b.buffer("in_scaler", 1, kElement);
  const BufferId xsq = b.scratch("xsq", 1), row_sum = b.scratch("row_sum", 1), row_scale = b.scratch("row_scale", 1);
  const BufferId out = b.buffer("out", 2, kElement);
  b.load("load_x", x, {}, in_x);
  b.load("load_row_scaler", ones, {}, in_scaler);

  GenericStage square = b.compute("square", {rows(2), cols(4)});
  const Expr left = square.read(in_x, ident(4)), right = square.read(in_x, ident(4));
  square.write(xsq, left * right);
  GenericStage reduce = b.compute("reduce_rows", {rows(2), reduce_cols(4)});
  const Expr term = reduce.read(xsq, ident(b.width(xsq)));
  reduce.scaler(in_scaler);
  reduce.write(row_sum, term);
  GenericStage root = b.compute("row_xform", {rows(2), cols(4)});
  const Expr sum = root.read(row_sum, row_of(tw));
  root.write(row_scale, rsqrt(sum, 1000, 1));
  GenericStage rescale = b.compute("rescale", flat(8));
  const Expr v = rescale.read(in_x, at(0));
  std::vector<Band> heads;
  for (int64_t h = 0; h < 2; ++h) heads.push_back({4 * (h + 1), v * rescale.read(row_scale, fixed(h * tw))});
  rescale.write(out, banded(heads));

  b.store("store_y", out, y, {});
  return std::move(b).finish(
      {.name = "l2norm_2x4", .items = one_item(2), .claim = approx("per-head l2 normalization in bf16")});
}

TEST(Example, IsWhatTheBuilderWrites) {
  const Result<Program> built = l2norm(testing::shipped_target("toy_square"));
  ASSERT_TRUE(built.ok()) << to_text(built.refusal());
  EXPECT_EQ(print(*built), example_of_the_page());
}

TEST(Example, ReadsAndIsWellFormed) {
  const Result<Program> read = parse_program(example_of_the_page(), "docs/spatial-ir.md");
  ASSERT_TRUE(read.ok()) << to_text(read.refusal());
  EXPECT_TRUE(validate(*read).empty());
  EXPECT_TRUE(check_target(*read, testing::shipped_target("toy_square")).ok());
}

}  // namespace
}  // namespace tw::spatial
