#pragma once

// Between the flat and the dense layout of one rows x cols tensor, at any precision, bit for bit. What agree_layouts()
// (compose.h) puts between sections that disagree; norms of narrow units use it too.

#include <cstdint>
#include <vector>

#include "spatial/compose.h"
#include "spatial/target.h"

namespace tw::spatial::lower {

// The relayouts for a target, of which it keeps a copy.
Relayout relayout_for(const Target& target);
// One request by the form that its shape asks for.
Result<Program> relayout(const RelayoutRequest& request, const Target& target);

// ---- forms ----

// Rows of whole tiles: a tile row of the dense form is gathered from the tiles of up to tile.rows flat rows.
Result<Program> dense_of_rows(const RelayoutRequest& request, const Target& target);
// Any other rows: a tile row of the dense form is cut out of one run of the flat one. Refused when there are more rows
// than a tile has and tile.rows of them do not end at a tile.
Result<Program> dense_of_narrow_rows(const RelayoutRequest& request, const Target& target);
// Rows of whole tiles: flat row i of `to` is row picks[i] of the dense `from`, which has request.rows rows.
Result<Program> rows_of_dense(const RelayoutRequest& request, const Target& target, const std::vector<uint64_t>& picks);
// All rows in order.
Result<Program> rows_of_dense(const RelayoutRequest& request, const Target& target);
// Any other rows, under the same condition.
Result<Program> narrow_rows_of_dense(const RelayoutRequest& request, const Target& target);

}  // namespace tw::spatial::lower
