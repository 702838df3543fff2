// Tables of text.
#pragma once

#include <string>
#include <vector>

namespace normlab {

using Row = std::vector<std::string>;

// The first column to the left, the others to the right. What does not fit into `columns` goes on below, next to the
// first column again; 0 is no limit.
std::string aligned(const std::vector<Row>& rows, std::size_t columns = 0);

}  // namespace normlab
