// Tables of text.
#pragma once

#include <string>
#include <vector>

namespace normlab {

using Row = std::vector<std::string>;

// The first column to the left, the others to the right.
std::string aligned(const std::vector<Row>& rows);

}  // namespace normlab
