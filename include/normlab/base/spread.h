// Several values of one quantity, as over seeds: where they lie and how far apart.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace normlab {

struct Spread {
  double mean = 0, deviation = 0, least = 0, greatest = 0;  // deviation: of the sample, n - 1
  std::size_t count = 0;
  double standard_error() const;  // of the mean; 0 with one value
};
Spread spread_of(std::span<const double> values);
std::string spread_text(std::span<const double> values);  // "2.43 (2.41 to 2.45)"

}  // namespace normlab
