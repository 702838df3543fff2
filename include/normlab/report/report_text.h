// What the reports in characters are made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "normlab/chart/text_chart.h"
#include "normlab/run/run_reader.h"

namespace normlab {

// The points (step, value) of a kind of line, each value times `factor`.
TextLine line_of(const RunFiles& run, std::string_view kind, std::string_view field, char mark, double factor = 1);
// Losses over the steps.
std::string loss_chart(const std::vector<TextLine>& lines, int columns);
// Blocks by steps, light to heavy by the logarithm of the value.
std::string map_text(const RunFiles& run, int columns);

}  // namespace normlab
