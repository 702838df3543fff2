// Mean and deviation.
#include "normlab/base/spread.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "normlab/base/text.h"

namespace normlab {

double Spread::standard_error() const { return count > 1 ? deviation / std::sqrt(static_cast<double>(count)) : 0; }

Spread spread_of(std::span<const double> values) {
  Spread spread;
  spread.count = values.size();
  if (values.empty()) return spread;
  const double count = static_cast<double>(values.size());
  spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  spread.least = *std::ranges::min_element(values);
  spread.greatest = *std::ranges::max_element(values);
  return spread;
}

std::string spread_text(std::span<const double> values) {
  const Spread spread = spread_of(values);
  std::string mean = significant(spread.mean, 4);
  if (spread.count < 2) return mean;
  return text(mean, " (", significant(spread.least, 4), " to ", significant(spread.greatest, 4), ", ", spread.count,
              " seeds)");
}

}  // namespace normlab
