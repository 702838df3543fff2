// The parts that the pages of reports are made of, and the pictures that runs and sweeps share.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "normlab/chart/svg.h"
#include "normlab/chart/table.h"
#include "normlab/report/report.h"

namespace normlab {

// The whole file: no script, nothing from elsewhere.
std::string html_page(std::string_view title, std::string_view body);
std::string html_section(std::string_view title, std::string_view body);
std::string html_figures(std::span<const svg::Picture> pictures);
// The first row is the head. Cells are text, not HTML. On a phone a row has the names of its columns next to its cells;
// the first cell has it where it is a value like the others, and no name of the row.
enum class FirstCell { name, value };
std::string html_table(const std::vector<Row>& rows, FirstCell first = FirstCell::name);
std::string html_paragraph(std::string_view content);

// A run with its name and colour among others.
struct NamedRun {
  const RunFiles* run;
  std::string name;
  int colour = 0;
};

// What losses that are compared are in: nats per token, or bits per byte where the tokens of the runs differ.
struct LossUnit {
  bool bytes = false;

  std::string label() const { return bytes ? "bits per byte" : "nats per token"; }
  // What a loss in nats per token is multiplied by, in bits per byte that of the validation text; NaN: the run has not
  // measured it.
  double factor(const RunFiles& run) const;
};
LossUnit loss_unit(std::span<const NamedRun> runs);

// The points (step, value) of a kind of line.
svg::Series series_of(const RunFiles& run, std::string_view kind, std::string_view field, std::string name, int colour);
// Unigram, bigram and floor: the mean over the runs, where their texts are alike.
std::vector<svg::Level> entropy_levels(std::span<const NamedRun> runs);
inline constexpr double kFarLoss = 30;  // a loss above it left the scale of the entropies: its axis is logarithmic
// `kind`, of several runs: train or eval. One run has both.
svg::Picture loss_picture(std::span<const NamedRun> runs, std::string title, std::string_view kind = "eval");
// What the colours of a layer map stand for. `field`: of a `layers` line, an array with an entry a block, or
// grad_norm.blocks.*.PARAMETER.
struct LayerFigure {
  std::string title, field, label;
  bool log;
  std::optional<std::pair<double, double>> range = {};
};
// Layer by layer over the steps; nothing where the run has no such figures.
std::vector<svg::Picture> layer_map(const NamedRun& named, const LayerFigure& figure);
// Norm by norm over the steps. `field`: of a `layers` line, an object with a number for each norm.
std::vector<svg::Picture> norm_map(const NamedRun& named, const LayerFigure& figure);
// The gradient of each block's second MLP matrix before the first update, next to what theory expects.
std::vector<svg::Picture> gradients_at_start(std::span<const NamedRun> runs);
// The maps that show how runs go wrong: gradients and token cosine, of all runs in the same colours.
std::vector<svg::Picture> failure_maps(std::span<const NamedRun> runs);

}  // namespace normlab
