// Columns as wide as their widest cell.
#include "normlab/chart/table.h"

#include <algorithm>

namespace normlab {
namespace {

constexpr std::size_t kGap = 2;

// The first column and begin .. end.
std::string part_of(const std::vector<Row>& rows, const std::vector<std::size_t>& widths, std::size_t begin,
                    std::size_t end) {
  std::string out;
  for (const Row& row : rows) {
    out += row[0] + std::string(widths[0] - row[0].size(), ' ');
    for (std::size_t i = begin; i < std::min(end, row.size()); ++i)
      out += std::string(kGap + widths[i] - row[i].size(), ' ') + row[i];
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

}  // namespace

std::string aligned(const std::vector<Row>& rows, std::size_t columns) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string out;
  std::size_t begin = 1;
  do {
    std::size_t end = begin, width = widths[0];
    while (end < widths.size() && (columns == 0 || end == begin || width + kGap + widths[end] <= columns))
      width += kGap + widths[end++];
    out += (begin > 1 ? "\n" : "") + part_of(rows, widths, begin, end);
    begin = end;
  } while (begin < widths.size());
  return out;
}

}  // namespace normlab
