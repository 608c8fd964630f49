#pragma once

// The small checker: goes over a certificate again, by counting what the program does rather than by reasoning about
// it. It shares the program's types and the fingerprint with the one that made the certificate, and nothing of how that
// one comes to its figures: each is counted by plain loops over items, sub-blocks, blocks, tiles and points, and must
// be the certificate's. Takes time in proportion to the trips.

#include <string>
#include <vector>

#include "spatial/certify/certificate.h"
#include "spatial/program.h"

namespace tw::spatial {

// One sentence for each thing that does not hold; none when the certificate is one of this program on this target.
// Requires a program without findings of validate().
std::vector<std::string> recheck(const Program& program, const Target& target, const Certificate& certificate);

}  // namespace tw::spatial
