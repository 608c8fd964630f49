#include "plan/arena.h"

#include <gtest/gtest.h>

#include <random>

namespace tw::plan {
namespace {

bool share_bytes(const Piece& a, const Piece& b) {
  return a.bytes != 0 && b.bytes != 0 && a.at < b.at + b.bytes && b.at < a.at + a.bytes;
}
bool share_time(const Piece& a, const Piece& b) { return a.first <= b.last && b.first <= a.last; }

TEST(Arena, PiecesOfDisjointLivesShareBytes) {
  std::vector<Piece> pieces{{100, 0, 1}, {100, 2, 3}, {100, 4, 5}};
  EXPECT_EQ(place_pieces(pieces), 128u);
  EXPECT_EQ(pieces[0].at, pieces[1].at);
  EXPECT_EQ(pieces[1].at, pieces[2].at);
}

TEST(Arena, APieceThatEndsWhereAnotherBeginsKeepsItsBytes) {
  std::vector<Piece> pieces{{64, 0, 2}, {64, 2, 3}};
  EXPECT_EQ(place_pieces(pieces), 128u);
  EXPECT_NE(pieces[0].at, pieces[1].at);
}

TEST(Arena, GapsOfNeighboursJoin) {
  std::vector<Piece> pieces{{64, 0, 1}, {64, 0, 1}, {128, 2, 2}};
  EXPECT_EQ(place_pieces(pieces), 128u);
}

TEST(Arena, AnEmptyPieceTakesNoBytes) {
  std::vector<Piece> pieces{{0, 0, 9}, {1, 0, 9}};
  EXPECT_EQ(place_pieces(pieces), kArenaAlignment);
}

TEST(Arena, RandomPiecesNeverOverlapInTimeAndPlace) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    std::vector<Piece> pieces(1 + random() % 120);
    uint64_t bytes = 0;
    for (Piece& piece : pieces) {
      piece.bytes = random() % 1000;
      piece.first = random() % 60;
      piece.last = piece.first + random() % 20;
      bytes += (piece.bytes + 63) / 64 * 64;
    }
    const uint64_t arena = place_pieces(pieces);
    EXPECT_LE(arena, bytes) << "seed " << seed;
    for (size_t a = 0; a < pieces.size(); ++a) {
      EXPECT_EQ(pieces[a].at % kArenaAlignment, 0u);
      EXPECT_LE(pieces[a].at + pieces[a].bytes, arena);
      for (size_t b = 0; b < a; ++b) {
        EXPECT_FALSE(share_time(pieces[a], pieces[b]) && share_bytes(pieces[a], pieces[b])) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace tw::plan
