// metrics.jsonl as CSV.
#include <cmath>

#include "normlab/train/export.h"
#include "normlab/train/tidy.h"

namespace normlab {

std::string metrics_csv(std::string_view jsonl, const std::string& path) {
  std::string out = "step,layer,part,measure,value\n";
  read_log(jsonl, path, [&](const Json& line, const std::string&, std::size_t) {
    // No name has a comma, a quote or a line break, so nothing needs quotes.
    for (const Figure& figure : figures_of(line))
      out += text(figure.step, ',', figure.layer ? number(*figure.layer) : "", ',', figure.part, ',', figure.measure,
                  ',', std::isnan(figure.value) ? "NaN" : number(figure.value), '\n');
    return true;
  });
  return out;
}

}  // namespace normlab
