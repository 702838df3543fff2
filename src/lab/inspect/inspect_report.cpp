// An inspection as JSON, as text and as a picture.
#include <algorithm>
#include <cmath>

#include "normlab/chart/table.h"
#include "normlab/lab/inspect/inspect.h"
#include "normlab/optim/optimizer.h"
#include "normlab/run/run.h"

namespace normlab {
namespace {

std::string short_number(double value) {
  const double size = std::fabs(value);
  return value != 0 && (size < 0.01 || size >= 10000) ? significant(value, 2) : significant(value, 3);
}

// The largest spread of a block's norms; nothing where it has none.
std::optional<double> norm_spread(const Inspection& inspection, std::size_t block) {
  std::optional<double> spread;
  for (const NormFigures& norm : inspection.norms)
    if (norm.name.starts_with(text("blocks.", block, '.'))) spread = std::max(spread.value_or(0), norm.spread);
  return spread;
}

constexpr std::size_t kBar = 16;  // columns

std::string left(std::string cell, std::size_t width) {
  cell.resize(std::max(width, cell.size()), ' ');
  return cell;
}

std::string block_table(const InspectReport& report, std::size_t columns) {
  const Inspection& in = report.inspection;
  const std::vector<std::string> matrices = in.matrices();
  const std::vector<double> expected = expected_shape(report.config.model, in.stream());
  std::vector<Row> rows{{"block"}};
  for (const std::string& matrix : matrices) rows[0].push_back(text("g ", matrix.substr(matrix.find('.') + 1)));
  for (const char* head : {"down/last", "theory", "stream", "its g", "attn", "mlp", "cosine", "spread", "entropy"})
    rows[0].emplace_back(head);
  rows[0].push_back(left("g down", kBar));
  const double last = in.matrix_gradient(in.blocks.size() - 1, "mlp.down");
  double largest = 0;
  for (std::size_t i = 0; i < in.blocks.size(); ++i) largest = std::max(largest, in.matrix_gradient(i, "mlp.down"));
  for (std::size_t i = 0; i < in.blocks.size(); ++i) {
    Row& row = rows.emplace_back(Row{number(static_cast<std::int64_t>(i))});
    for (const std::string& matrix : matrices) row.push_back(short_number(in.matrix_gradient(i, matrix)));
    const InspectedBlock& b = in.blocks[i];
    row.push_back(short_number(in.matrix_gradient(i, "mlp.down") / last));
    row.push_back(short_number(expected[i]));
    for (const double value : {b.residual_rms, b.residual_grad_rms, b.attn_output_rms, b.mlp_output_rms})
      row.push_back(short_number(value));
    row.push_back(fixed(b.token_cosine, 3));
    const auto spread = norm_spread(in, i);
    row.push_back(spread ? fixed(*spread, 3) : "-");
    row.push_back(fixed(b.entropy_share, 3));
    const double share = largest > 0 ? in.matrix_gradient(i, "mlp.down") / largest : 0;
    row.push_back(left(std::string(static_cast<std::size_t>(std::lround(share * kBar)), '#'), kBar));
  }
  return aligned(rows, columns);
}

constexpr const char* kLegend =
    "g: norm of the gradient of a matrix. down/last: that of mlp.down as a share of\n"
    "the last block's, next to what theory expects of this placement at\n"
    "initialisation. stream: root mean square of the residual stream after the\n"
    "block; its g: of the loss's gradient there; attn, mlp: of what the two\n"
    "sublayers add. cosine: mean between the states of two tokens (1: all alike).\n"
    "spread: of the sizes that the block's norms divide by, standard deviation /\n"
    "mean. entropy: of attention, as a share of uniform attention's.\n";

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

std::string shard_table(const InspectReport& report) {
  std::vector<Row> rows{{"shards", "rows of each", "relative difference"}};
  for (const ShardPoint& point : report.shards)
    rows.push_back(
        {number(point.shards), number(report.config.train.batch_size / point.shards), short_number(point.difference)});
  return text(
      "\ngradient of the batch in shards, each with the statistics of its own rows, against the\n"
      "whole batch's, which model.norm_sync gives\n",
      aligned(rows));
}

std::string megabytes(double bytes) { return text(fixed(bytes / (1 << 20), 2), " MB"); }

std::string memory_line(const InspectReport& report) {
  const Costs& c = report.costs;
  return text("memory: parameters ", megabytes(c.parameter_bytes), ", gradients ", megabytes(c.gradient_bytes), ", ",
              config::to_string(report.config.optimizer.name), "'s averages ", megabytes(c.optimizer_bytes), "; about ",
              fixed(c.peak_bytes / (1 << 20), 0), " MB at the peak of training\n");
}

std::string cost_lines(const InspectReport& report) {
  const Costs& c = report.costs;
  const RunConfig& config = report.config;
  std::string out = text("\nparameters: ", fixed(c.parameters, 0), " (", fixed(c.decayed, 0), " in matrices, ",
                         config.optimizer.weight_decay > 0 ? "decayed; " : "which weight decay would fall on; ",
                         fixed(c.parameters - c.decayed, 0), " gains and biases, never decayed)\n");
  out += memory_line(report);
  out += text("work: ", significant(c.flops_per_token, 4), " FLOPs a token, ", significant(c.flops_per_step, 4),
              " a step, forward and backward\n");
  return out + text("numbers that each device would send a step for synced norms: ", fixed(c.synced_numbers, 0),
                    c.synced_numbers == 0 ? " (no norm here looks at other samples)\n" : "\n");
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
                       {"peak_bytes", c.peak_bytes},
                       {"optimizer_bytes", c.optimizer_bytes},
                       {"flops_per_token", c.flops_per_token},
                       {"flops_per_step", c.flops_per_step},
                       {"synced_numbers", c.synced_numbers}});
}

Json blocks_json(const InspectReport& report) {
  const Inspection& in = report.inspection;
  const std::vector<double> expected = expected_shape(report.config.model, in.stream());
  Json blocks = Json::array();
  for (std::size_t i = 0; i < in.blocks.size(); ++i) {
    const InspectedBlock& b = in.blocks[i];
    Json gradients = Json::object();
    for (const std::string& matrix : in.matrices()) gradients.set(matrix, in.matrix_gradient(i, matrix));
    Json block = Json::object({{"grad_norm", std::move(gradients)}, {"expected_shape", expected[i]}});
    for (const BlockFigureName& figure : kBlockFigures) block.set(figure.name, b.*figure.value);
    block.set("norm_spread", norm_spread(in, i))
        .set("attention_entropy", b.attention_entropy)
        .set("attention_entropy_share", b.entropy_share);
    blocks.push(std::move(block));
  }
  return blocks;
}

}  // namespace

Json json_of(const InspectReport& report) {
  const Inspection& in = report.inspection;
  Json parameters = Json::array(), norms = Json::array(), shards = Json::array();
  for (const ParameterFigures& p : in.parameters)
    parameters.push(Json::object({{"name", p.name},
                                  {"shape", std::vector<Index>(p.shape.begin(), p.shape.end())},
                                  {"grad_norm", p.grad_norm},
                                  {"norm", p.norm},
                                  {"decayed", p.shape.rank() == 2}}));
  for (const NormFigures& norm : in.norms)
    norms.push(Json::object({{"name", norm.name}, {"deviation", norm.deviation}, {"spread", norm.spread}}));
  for (const ShardPoint& point : report.shards)
    shards.push(Json::object({{"shards", point.shards}, {"relative_difference", point.difference}}));
  const double first = in.matrix_gradient(0, "mlp.down"), last = in.matrix_gradient(in.blocks.size() - 1, "mlp.down");
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
       {"depths", report.depths ? json_of(*report.depths) : Json()},
       {"shards", std::move(shards)}});
}

std::string text_of(const InspectReport& report, std::size_t columns) {
  const ModelConfig& m = report.config.model;
  std::string out = text(report.subject, "; ", m.n_layers, m.n_layers == 1 ? " block" : " blocks",
                         " of attention and an MLP, each sublayer f: ", equation_of(m),
                         slots_of(m).before_head ? ", and a norm before the head" : "", "\nloss ",
                         fixed(report.inspection.loss, 4), " on one training batch\n\n");
  out += block_table(report, columns) + kLegend;
  if (report.depths) out += depth_table(*report.depths);
  if (!report.shards.empty()) out += shard_table(report);
  return out + cost_lines(report);
}

}  // namespace normlab
