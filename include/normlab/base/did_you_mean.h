// What somebody who wrote a name that does not exist may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace normlab {

// The candidate with the fewest letters added, left out, replaced or swapped with their neighbour ('-' equals '_', case
// folded), within a third of the name's letters, rounded down, or one; of two, the one with the same first letter. Else
// one that begins with the name, or that the name begins with, as rmsnorm does with rms; else empty.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean 'X'?", or `otherwise` when none is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view otherwise = {});

}  // namespace normlab
