// An inspection as JSON, as text and as a picture.
#include <algorithm>
#include <cmath>

#include "normlab/lab/inspect.h"
#include "normlab/lab/svg.h"
#include "normlab/lab/table.h"
#include "normlab/optim/optimizer.h"
#include "normlab/train/run.h"

namespace normlab {
namespace {

std::string short_number(double value) {
  const double size = std::fabs(value);
  return value != 0 && (size < 0.01 || size >= 10000) ? significant(value, 2) : significant(value, 3);
}

// The matrices of a block: attn.qkv attn.out mlp.up (mlp.gate) mlp.down
std::vector<std::string> matrices_of(const Inspection& inspection) {
  constexpr std::string_view kPrefix = "blocks.0.", kSuffix = ".weight";
  std::vector<std::string> names;
  for (const ParameterFigures& parameter : inspection.parameters)
    if (parameter.name.starts_with(kPrefix) && parameter.shape.rank() == 2)
      names.push_back(parameter.name.substr(kPrefix.size(), parameter.name.size() - kPrefix.size() - kSuffix.size()));
  return names;
}

double matrix_gradient(const Inspection& inspection, std::size_t block, const std::string& matrix) {
  return inspection.grad_norm(text("blocks.", block, '.', matrix, ".weight"));
}

// The largest spread of a block's norms; nothing where it has none.
std::optional<double> norm_spread(const Inspection& inspection, std::size_t block) {
  std::optional<double> spread;
  for (const NormFigures& norm : inspection.norms)
    if (norm.name.starts_with(text("blocks.", block, '.'))) spread = std::max(spread.value_or(0), norm.spread);
  return spread;
}

std::string block_table(const InspectReport& report) {
  const Inspection& in = report.inspection;
  const std::vector<std::string> matrices = matrices_of(in);
  const std::vector<double> expected = expected_shape(report.config.model, in.blocks);
  std::vector<Row> rows{{"block"}};
  for (const std::string& matrix : matrices) rows[0].push_back(text("g ", matrix.substr(matrix.find('.') + 1)));
  for (const char* head : {"down/last", "theory", "stream", "its g", "attn", "mlp", "cosine", "spread", "entropy"})
    rows[0].emplace_back(head);
  const double last = matrix_gradient(in, in.blocks.size() - 1, "mlp.down");
  for (std::size_t i = 0; i < in.blocks.size(); ++i) {
    Row& row = rows.emplace_back(Row{number(static_cast<std::int64_t>(i))});
    for (const std::string& matrix : matrices) row.push_back(short_number(matrix_gradient(in, i, matrix)));
    const InspectedBlock& b = in.blocks[i];
    row.push_back(short_number(matrix_gradient(in, i, "mlp.down") / last));
    row.push_back(short_number(expected[i]));
    for (const double value : {b.residual_rms, b.residual_grad_rms, b.attn_output_rms, b.mlp_output_rms})
      row.push_back(short_number(value));
    row.push_back(fixed(b.token_cosine, 3));
    const auto spread = norm_spread(in, i);
    row.push_back(spread ? fixed(*spread, 3) : "-");
    row.push_back(fixed(b.entropy_share, 3));
  }
  return aligned(rows);
}

constexpr const char* kLegend =
    "g: norm of the gradient of a matrix. down/last: that of mlp.down as a share of the last block's, and what "
    "theory\n"
    "expects of this placement. stream: root mean square of the residual stream behind the block; its g: of the "
    "loss's\n"
    "gradient there; attn, mlp: of what the two sublayers add. cosine: mean between the states of two tokens (1: all\n"
    "alike). spread: of the sizes that the block's norms divide by, standard deviation / mean. entropy: of attention, "
    "as\n"
    "a share of uniform attention's.\n";

std::string depth_table(const DepthFit& fit) {
  std::vector<Row> rows{
      {"layers", "last block's g down", "+-", "first block's", "first/last (median)", "last block's g out"}};
  for (const DepthPoint& point : fit.points)
    rows.push_back({number(point.n_layers), short_number(point.last), short_number(point.last_deviation),
                    short_number(point.first), short_number(point.first_over_last), short_number(point.attn_last)});
  rows.push_back({"exponent", fixed(fit.last, 2), "", fixed(fit.first, 2), "", fixed(fit.attn_last, 2)});
  rows.push_back({"theory", fixed(fit.expected_last, 2), "", "", "", fixed(fit.expected_last, 2)});
  return text("\nfresh models by depth (theory: Xiong et al. 2020, theorem 1; xavier initialisation)\n", aligned(rows));
}

std::string megabytes(double bytes) { return text(fixed(bytes / (1 << 20), 2), " MB"); }

std::string cost_lines(const InspectReport& report) {
  const Costs& c = report.costs;
  const RunConfig& config = report.config;
  std::string out = text("\nparameters: ", fixed(c.parameters, 0), " (", fixed(c.decayed, 0), " in matrices, ",
                         config.optimizer.weight_decay > 0 ? "decayed; " : "which weight decay would fall on; ",
                         fixed(c.parameters - c.decayed, 0), " gains and biases, never decayed)\n");
  out += text("memory: parameters ", megabytes(c.parameter_bytes), ", gradients ", megabytes(c.gradient_bytes), ", ",
              config::to_string(config.optimizer.name), "'s averages ", megabytes(c.optimizer_bytes), '\n');
  out += text("work: ", significant(c.flops_per_token, 4), " FLOPs a token, ", significant(c.flops_per_step, 4),
              " a step, forward and backward\n");
  return out + text("numbers that each device would send a step for synced norms: ", fixed(c.synced_numbers, 0),
                    c.synced_numbers == 0 ? " (no norm here looks at other samples)\n" : "\n");
}

svg::Picture gradient_chart(const InspectReport& report) {
  const Inspection& in = report.inspection;
  svg::Chart chart{.title = "gradient norm by block", .x = {"block"}, .y = {"norm", true}, .series = {}};
  std::vector<double> blocks;
  for (std::size_t i = 0; i < in.blocks.size(); ++i) blocks.push_back(static_cast<double>(i));
  int colour = 0;
  for (const std::string& matrix : matrices_of(in)) {
    svg::Series series{.name = matrix, .x = blocks, .y = {}, .colour = colour++ % svg::kColours};
    for (std::size_t i = 0; i < blocks.size(); ++i) series.y.push_back(matrix_gradient(in, i, matrix));
    chart.series.push_back(series);
  }
  svg::Series theory{.name = "theory (mlp.down)",
                     .x = blocks,
                     .y = expected_shape(report.config.model, in.blocks),
                     .colour = (colour - 1) % svg::kColours,
                     .form = svg::Series::Form::dashed};
  for (double& value : theory.y) value *= matrix_gradient(in, blocks.size() - 1, "mlp.down");
  chart.series.push_back(theory);
  return svg::chart(chart);
}

svg::Picture block_chart(const InspectReport& report, const std::string& title, const std::string& label, bool log,
                         const std::vector<std::pair<const char*, double InspectedBlock::*>>& figures) {
  svg::Chart chart{.title = title, .x = {"block"}, .y = {label, log}, .series = {}};
  for (const auto& [name, figure] : figures) {
    svg::Series series{.name = name, .x = {}, .y = {}, .colour = static_cast<int>(chart.series.size())};
    for (const InspectedBlock& block : report.inspection.blocks) {
      series.x.push_back(static_cast<double>(series.x.size()));
      series.y.push_back(block.*figure);
    }
    chart.series.push_back(series);
  }
  return svg::chart(chart);
}

svg::Picture depth_chart(const DepthFit& fit) {
  svg::Chart chart{
      .title = "gradient norm of mlp.down by depth", .x = {"layers", true}, .y = {"norm", true}, .series = {}};
  svg::Series last{.name = "last block", .x = {}, .y = {}, .colour = 0},
      first{.name = "first block", .x = {}, .y = {}, .colour = 1},
      theory{.name = "last block, theory", .x = {}, .y = {}, .colour = 0, .form = svg::Series::Form::dashed};
  for (const DepthPoint& point : fit.points) {
    const double depth = static_cast<double>(point.n_layers);
    for (svg::Series* series : {&last, &first, &theory}) series->x.push_back(depth);
    last.y.push_back(point.last);
    first.y.push_back(point.first);
    theory.y.push_back(fit.points[0].last *
                       std::pow(depth / static_cast<double>(fit.points[0].n_layers), fit.expected_last));
  }
  chart.series = {last, first, theory};
  return svg::chart(chart);
}

Json json_of(const DepthFit& fit) {
  Json points = Json::array();
  for (const DepthPoint& point : fit.points)
    points.push(Json::object({{"n_layers", point.n_layers},
                              {"last", point.last},
                              {"last_deviation", point.last_deviation},
                              {"first", point.first},
                              {"attn_out_last", point.attn_last},
                              {"first_over_last", point.first_over_last}}));
  return Json::object(
      {{"points", std::move(points)},
       {"exponents", Json::object({{"last", fit.last}, {"first", fit.first}, {"attn_out_last", fit.attn_last}})},
       {"expected", Json::object({{"last", fit.expected_last}, {"attn_out_last", fit.expected_last}})}});
}

Json json_of(const Costs& c) {
  return Json::object({{"parameters", c.parameters},
                       {"decayed", c.decayed},
                       {"parameter_bytes", c.parameter_bytes},
                       {"gradient_bytes", c.gradient_bytes},
                       {"optimizer_bytes", c.optimizer_bytes},
                       {"flops_per_token", c.flops_per_token},
                       {"flops_per_step", c.flops_per_step},
                       {"synced_numbers", c.synced_numbers}});
}

Json blocks_json(const InspectReport& report) {
  const Inspection& in = report.inspection;
  const std::vector<double> expected = expected_shape(report.config.model, in.blocks);
  Json blocks = Json::array();
  for (std::size_t i = 0; i < in.blocks.size(); ++i) {
    const InspectedBlock& b = in.blocks[i];
    Json gradients = Json::object();
    for (const std::string& matrix : matrices_of(in)) gradients.set(matrix, matrix_gradient(in, i, matrix));
    blocks.push(Json::object({{"grad_norm", std::move(gradients)},
                              {"expected_shape", expected[i]},
                              {"residual_rms", b.residual_rms},
                              {"residual_grad_rms", b.residual_grad_rms},
                              {"attn_output_rms", b.attn_output_rms},
                              {"mlp_output_rms", b.mlp_output_rms},
                              {"token_cosine", b.token_cosine},
                              {"norm_spread", norm_spread(in, i)},
                              {"attention_entropy", b.attention_entropy},
                              {"attention_entropy_share", b.entropy_share}}));
  }
  return blocks;
}

}  // namespace

Json json_of(const InspectReport& report) {
  const Inspection& in = report.inspection;
  Json parameters = Json::array(), norms = Json::array();
  for (const ParameterFigures& p : in.parameters)
    parameters.push(Json::object({{"name", p.name},
                                  {"shape", std::vector<Index>(p.shape.begin(), p.shape.end())},
                                  {"grad_norm", p.grad_norm},
                                  {"norm", p.norm},
                                  {"decayed", p.shape.rank() == 2}}));
  for (const NormFigures& norm : in.norms)
    norms.push(Json::object({{"name", norm.name}, {"deviation", norm.deviation}, {"spread", norm.spread}}));
  const double first = matrix_gradient(in, 0, "mlp.down"), last = matrix_gradient(in, in.blocks.size() - 1, "mlp.down");
  return Json::object(
      {{"subject", report.subject},
       {"equation", equation_of(report.config.model)},
       {"loss", in.loss},
       {"blocks", blocks_json(report)},
       {"parameters", std::move(parameters)},
       {"norms", std::move(norms)},
       {"down_grad_norm",
        Json::object(
            {{"first", first}, {"last", last}, {"first_over_last", first / last}, {"last_over_first", last / first}})},
       {"costs", json_of(report.costs)},
       {"depths", report.depths ? json_of(*report.depths) : Json()}});
}

std::string text_of(const InspectReport& report) {
  const ModelConfig& m = report.config.model;
  std::string out = text(report.subject, "; ", m.n_layers, m.n_layers == 1 ? " block" : " blocks",
                         " of attention and an MLP, each sublayer f: ", equation_of(m),
                         slots_of(m.placement).before_head ? ", and a norm before the head" : "", "\nloss ",
                         fixed(report.inspection.loss, 4), " on one training batch\n\n");
  out += block_table(report) + kLegend;
  if (report.depths) out += depth_table(*report.depths);
  return out + cost_lines(report);
}

std::string svg_of(const InspectReport& report) {
  using B = InspectedBlock;
  std::vector<svg::Picture> pictures{
      gradient_chart(report),
      block_chart(report, "sizes by block", "root mean square", true,
                  {{"residual stream", &B::residual_rms},
                   {"attention's output", &B::attn_output_rms},
                   {"MLP's output", &B::mlp_output_rms}}),
      block_chart(report, "gradient of the residual stream", "root mean square", true,
                  {{"behind the block", &B::residual_grad_rms}}),
      block_chart(report, "tokens and attention by block", "", false,
                  {{"cosine of two tokens", &B::token_cosine}, {"entropy / uniform", &B::entropy_share}})};
  if (report.depths) pictures.push_back(depth_chart(*report.depths));
  return svg::file(pictures, 2);
}

}  // namespace normlab
