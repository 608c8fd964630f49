#include "lane/cpu/decoded.h"

#include <algorithm>
#include <cstring>

#include "gguf/decode.h"

namespace tw::lane::cpu {
namespace {

void put(const gguf::IntRun& run, Term term, uint32_t b, uint32_t lane, Decoded& out) {
  for (uint32_t g = 0; g < 8; ++g) std::memcpy(out.codes[b][g][lane], run.q + 4 * g, 4);
  const bool whole = term == Term::Scale || term == Term::ScaleMin || term == Term::TwoScales;
  out.scale[b][lane] = whole ? run.d[0] * static_cast<float>(run.sc[0]) : run.d[0];
  out.scale1[b][lane] = run.d[1] * static_cast<float>(run.sc[1]);
  out.neg_min[b][lane] = term == Term::ScaleMin ? -(run.dmin * static_cast<float>(run.m[0])) : -run.dmin;
  for (uint32_t h = 0; h < 2; ++h) {
    out.sub[b][h][lane] = run.sc[h];
    out.sub_min[b][h][lane] = run.m[h];
  }
}

}  // namespace

void decode_rows(const Packed& w, uint64_t panel, uint64_t first, uint32_t blocks, Decoded& out) {
  const uint64_t row_bytes = gguf::bytes_of(w.format, w.k);
  const auto rows = static_cast<uint32_t>(std::min<uint64_t>(kPanel, w.n - panel % w.group_panels() * kPanel));
  const std::byte* row = w.data + w.panel_offset(panel);
  gguf::IntRun runs[kSegmentBlocks];
  for (uint32_t lane = 0; lane < rows; ++lane, row += row_bytes) {
    gguf::decode_runs(w.format, row, first, std::span(runs, blocks));
    for (uint32_t b = 0; b < blocks; ++b) put(runs[b], w.term, b, lane, out);
  }
  for (uint32_t lane = rows; lane < kPanel; ++lane)
    for (uint32_t b = 0; b < blocks; ++b) put(gguf::IntRun{}, w.term, b, lane, out);
}

}  // namespace tw::lane::cpu
