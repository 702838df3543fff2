// metrics.jsonl as CSV.
#include <cmath>

#include "normlab/train/export.h"
#include "normlab/train/tidy.h"

namespace normlab {

std::string metrics_csv(std::string_view jsonl, const std::string& path) {
  std::string out = "step,layer,part,measure,value\n";
  for (int line = 1; !jsonl.empty(); ++line) {
    const std::size_t end = jsonl.find('\n');
    if (end == std::string_view::npos) break;  // a line that is being written, or was cut short by a crash
    const std::string place = text(path, ':', line);
    const Json json = parse_log_line(jsonl.substr(0, end), place);
    jsonl.remove_prefix(end + 1);
    // No name has a comma, a quote or a line break, so nothing needs quotes.
    for (const Figure& figure : figures_of(json))
      out += text(figure.step, ',', figure.layer ? number(*figure.layer) : "", ',', figure.part, ',', figure.measure,
                  ',', std::isnan(figure.value) ? "NaN" : number(figure.value), '\n');
  }
  return out;
}

}  // namespace normlab
