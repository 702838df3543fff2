// The lines of metrics.jsonl and timing.jsonl.
#include "normlab/run/metrics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "normlab/base/memory.h"
#include "normlab/formats/json.h"
#include "normlab/run/figures.h"

namespace normlab {
namespace {

Json line_of(std::int64_t step, const char* kind) { return Json::object({{"step", step}, {"kind", kind}}); }

Json train_line(const StepReport& step) {
  return line_of(step.step, "train")
      .set("loss", step.loss)
      .set("lr", step.lr)
      .set("grad_norm", step.grad_norm)
      .set("clip_coef", step.clip_coef)
      .set("tokens", step.tokens);
}

void add_statistics(Json& line, const StatisticsReport& report) {
  Json mean = Json::object(), variance = Json::object();
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    mean.set(report.norms[i], report.distances[i].mean);
    variance.set(report.norms[i], report.distances[i].variance);
  }
  line.set("statistics_mean_distance", mean)
      .set("statistics_variance_distance", variance)
      .set("loss_on_batch_statistics", report.loss_on_batch)
      .set("loss_on_running_statistics", report.loss_on_running);
}

// The sums of squares over the tensors of one block.
struct BlockSquares {
  double gradient = 0, weights = 0, update = 0;
};

// blocks.3.attn.qkv.weight -> 3; nothing for what belongs to no block
std::optional<std::size_t> block_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blocks.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  return static_cast<std::size_t>(*parse_int(name.substr(0, name.find('.'))));
}

}  // namespace

void MetricsLog::on_step_end(const StepReport& step, const EvalReport* evaluation, RunControl& control) {
  lines_.write(train_line(step));
  if (evaluation) on_late_evaluation(*evaluation, control);
}

void MetricsLog::on_nonfinite_step(const StepReport& step) { lines_.write(train_line(step).set("finite", false)); }

void MetricsLog::on_late_evaluation(const EvalReport& evaluation, RunControl&) {
  Json line = line_of(evaluation.step, "eval");
  line.set("loss", evaluation.loss)
      .set("loss_second_half", evaluation.loss_second_half)
      .set("loss_by_position", evaluation.loss_by_position)
      .set("bits_per_byte", evaluation.loss / (std::numbers::ln2 * bytes_per_token_))
      .set("floor", floor_);
  if (!std::isfinite(evaluation.loss)) line.set("finite", false);
  lines_.write(line);
}

LayersLog::LayersLog(LogWriter& lines, const LogConfig& config, Index blocks, const GradientAverages& averages,
                     bool clips)
    : lines_(lines), every_(config.layers_every), probe_(blocks), averages_(averages), clips_(clips) {}

Probe* LayersLog::probe(std::int64_t step) { return is_due(step) ? &probe_ : nullptr; }

void LayersLog::on_gradients(std::int64_t step, const ParameterStore& store) {
  if (!is_due(step)) return;
  waiting_ = true;
  step_ = step;
  store_ = &store;
  before_.clear();
  for (const Named& parameter : store.parameters())
    before_.emplace_back(parameter.tensor.values().begin(), parameter.tensor.values().end());
}

void LayersLog::on_step_end(const StepReport& step, const EvalReport*, RunControl&) {
  if (!waiting_) return;
  const std::vector<BlockFigures> blocks = probe_.take();
  std::vector<BlockSquares> squares(blocks.size());
  Json grad_norms = Json::object(), norms = Json::object(), update_norms = Json::object();
  for (std::size_t i = 0; i < before_.size(); ++i) {
    const Named& parameter = store_->parameters()[i];
    BlockSquares own{kernels::squared_norm(parameter.tensor.grad()), kernels::squared_norm(before_[i]), 0};
    std::ranges::transform(parameter.tensor.values(), before_[i], before_[i].begin(), std::minus<>());
    own.update = kernels::squared_norm(before_[i]);
    norms.set(parameter.name, std::sqrt(own.weights));
    grad_norms.set(parameter.name, std::sqrt(own.gradient));
    update_norms.set(parameter.name, std::sqrt(own.update));
    if (const auto block = block_of(parameter.name)) {
      squares[*block].gradient += own.gradient;
      squares[*block].weights += own.weights;
      squares[*block].update += own.update;
    }
  }
  Json block_gradient = Json::array(), ratio = Json::array();
  for (const BlockSquares& block : squares) {
    block_gradient.push(std::sqrt(block.gradient));
    ratio.push(std::sqrt(block.update / block.weights));
  }
  Json line = line_of(step_, "layers");
  line.set("grad_norm", grad_norms)
      .set("norm", norms)
      .set("update_norm", update_norms)
      .set("block_grad_norm", block_gradient)
      .set("update_to_weight", ratio);
  for (const BlockFigureName& figure : kBlockFigures) {
    Json values = Json::array();
    for (const BlockFigures& block : blocks) values.push(block.*figure.value);
    line.set(figure.name, std::move(values));
  }
  line.set("clip_rate", clips_ ? std::optional(clip_rate(averages_, step.step)) : std::nullopt)
      .set("gradient_noise_scale", noise_scale(averages_));
  if (statistics_) add_statistics(line, *statistics_);
  lines_.write(line);
  waiting_ = false;
}

void TimingLog::on_step_end(const StepReport& step, const EvalReport*, RunControl&) {
  tokens_ += step.tokens;
  if (step.step % every_ != 0) return;
  const auto now = Clock::now();
  const auto seconds = [](auto from, auto to) { return std::chrono::duration<double>(to - from).count(); };
  lines_.write(Json::object({{"step", step.step},
                             {"seconds", seconds(start_, now)},
                             {"tokens_per_s", static_cast<double>(tokens_) / seconds(last_, now)},
                             {"peak_rss_mb", peak_resident_mb()}}));
  tokens_ = 0;
  last_ = now;
}

KeptLines kept_lines(std::string_view jsonl, std::int64_t step, const std::string& path, bool evaluation_due) {
  KeptLines kept;
  std::map<std::string, std::int64_t> last_steps;  // by kind
  read_log(jsonl, path, [&](const Json& line, const std::string& place, std::size_t end) {
    const Json* kind = line.find("kind");
    const std::int64_t line_step = line.at("step").integer();
    const std::string kind_name = kind ? kind->string() : "";
    const auto [last, is_new] = last_steps.try_emplace(kind_name, line_step);
    check<DataError>(is_new || last->second < line_step, place, ": step ", line_step, " comes after step ",
                     last->second, ", and a log has each step once");
    last->second = line_step;
    const bool by_next_update = kind_name == "layers" || kind_name == "curvature";
    const bool by_evaluation = kind_name == "eval" || kind_name == "sample";
    if (line_step > step || (line_step == step && (by_next_update || (by_evaluation && evaluation_due)))) return false;
    kept.train_steps += kind_name == "train";
    kept.bytes = static_cast<std::int64_t>(end);
    return true;
  });
  return kept;
}
}  // namespace normlab
