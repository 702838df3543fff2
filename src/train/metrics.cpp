// The lines of metrics.jsonl and timing.jsonl.
#include "normlab/train/metrics.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "normlab/base/memory.h"
#include "normlab/formats/json.h"

namespace normlab {
namespace {

Json line_of(std::int64_t step, const char* kind) { return Json::object({{"step", step}, {"kind", kind}}); }

double norm(In values) { return std::sqrt(kernels::squared_norm(values)); }

// f(row) for each row of x [B, T, C] that is real.
template <class F>
void for_real_rows(const Tensor& x, Mask mask, F f) {
  const std::size_t channels = static_cast<std::size_t>(x.shape().last());
  for (std::size_t row = 0; row * channels < x.values().size(); ++row)
    if (mask.empty() || mask[row]) f(In(x.values().subspan(row * channels, channels)));
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

}  // namespace

void MetricsLog::on_step_end(const StepReport& step, const EvalReport* evaluation, RunControl&) {
  lines_.line(line_of(step.step, "train")
                  .set("loss", step.loss)
                  .set("lr", step.lr)
                  .set("grad_norm", step.grad_norm)
                  .set("clip_coef", step.clip_coef)
                  .set("tokens", step.tokens)
                  .line());
  if (!evaluation) return;
  Json line = line_of(step.step, "eval");
  line.set("loss", evaluation->loss)
      .set("loss_second_half", evaluation->loss_second_half)
      .set("bits_per_byte", evaluation->loss / (std::numbers::ln2 * bytes_per_token_))
      .set("floor", floor_);
  if (!std::isfinite(evaluation->loss)) line.set("finite", false);
  lines_.line(line.line());
}

LayersLog::LayersLog(LineWriter& lines, std::int64_t every, Index blocks)
    : lines_(lines), every_(every), blocks_(static_cast<std::size_t>(blocks)) {}

Probe* LayersLog::probe(std::int64_t step) { return is_due(step) ? this : nullptr; }

double LayersLog::MeanSquare::root() const { return count > 0 ? std::sqrt(squares / count) : 0; }

// The cosines of all pairs of rows together, with u the rows scaled to length 1: |sum u|^2 - sum |u|^2, both ways
// round.
void LayersLog::see(Site site, Index block, const Tensor& x, Mask mask) {
  BlockFigures& figures = blocks_[static_cast<std::size_t>(block)];
  MeanSquare& size = site == Site::attn_output  ? figures.attn_output
                     : site == Site::mlp_output ? figures.mlp_output
                                                : figures.residual;
  std::vector<double> sum(static_cast<std::size_t>(x.shape().last()), 0.0);
  double rows = 0;
  for_real_rows(x, mask, [&](In row) {
    const double squares = kernels::squared_norm(row);
    size.squares += squares;
    size.count += static_cast<double>(row.size());
    if (site != Site::block_output || squares == 0) return;
    const double inverse = 1 / std::sqrt(squares);
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += static_cast<double>(row[c]) * inverse;
    rows += 1;
  });
  if (site != Site::block_output) return;
  double all = 0;
  for (const double value : sum) all += value * value;
  figures.cosines += all - rows;
  figures.pairs += rows * (rows - 1);
  x.retain_grad();
  figures.block_outputs.push_back(x);
}

void LayersLog::on_gradients(std::int64_t step, const ParameterStore& store) {
  if (!is_due(step)) return;
  waiting_ = true;
  step_ = step;
  store_ = &store;
  before_.clear();
  for (const Named& parameter : store.parameters())
    before_.emplace_back(parameter.tensor.values().begin(), parameter.tensor.values().end());
}

void LayersLog::on_step_end(const StepReport&, const EvalReport*, RunControl&) {
  if (!waiting_) return;
  Json grad_norms = Json::object(), norms = Json::object(), update_norms = Json::object();
  for (std::size_t i = 0; i < before_.size(); ++i) {
    const Named& parameter = store_->parameters()[i];
    norms.set(parameter.name, norm(before_[i]));
    grad_norms.set(parameter.name, norm(parameter.tensor.grad()));
    std::ranges::transform(parameter.tensor.values(), before_[i], before_[i].begin(), std::minus<>());
    update_norms.set(parameter.name, norm(before_[i]));
  }
  Json residual = Json::array(), gradient = Json::array(), attn = Json::array(), mlp = Json::array(),
       cosine = Json::array();
  for (BlockFigures& block : blocks_) {
    double grad_squares = 0;
    for (const Tensor& output : block.block_outputs) grad_squares += kernels::squared_norm(output.grad());
    residual.push(block.residual.root());
    gradient.push(MeanSquare{grad_squares, block.residual.count}.root());
    attn.push(block.attn_output.root());
    mlp.push(block.mlp_output.root());
    cosine.push(block.pairs > 0 ? block.cosines / block.pairs : 0);
    block = {};
  }
  Json line = line_of(step_, "layers");
  line.set("grad_norm", grad_norms)
      .set("norm", norms)
      .set("update_norm", update_norms)
      .set("residual_rms", residual)
      .set("residual_grad_rms", gradient)
      .set("attn_output_rms", attn)
      .set("mlp_output_rms", mlp)
      .set("token_cosine", cosine);
  if (statistics_) add_statistics(line, *statistics_);
  lines_.line(line.line());
  waiting_ = false;
}

void TimingLog::on_step_end(const StepReport& step, const EvalReport*, RunControl&) {
  tokens_ += step.tokens;
  if (step.step % every_ != 0) return;
  const auto now = std::chrono::steady_clock::now();
  const auto seconds = [](auto from, auto to) { return std::chrono::duration<double>(to - from).count(); };
  lines_.line(Json::object({{"step", step.step},
                            {"seconds", seconds(start_, now)},
                            {"tokens_per_s", static_cast<double>(tokens_) / seconds(last_, now)},
                            {"peak_rss_mb", peak_resident_mb()}})
                  .line());
  tokens_ = 0;
  last_ = now;
}

KeptLines kept_lines(std::string_view jsonl, std::int64_t step, const std::string& path) {
  KeptLines kept;
  std::size_t begin = 0;
  for (int line_number = 1; begin < jsonl.size(); ++line_number) {
    const std::size_t end = jsonl.find('\n', begin);
    if (end == std::string_view::npos) break;  // a line cut short by a crash
    const std::string place = text(path, ':', line_number);
    const Json line = parse_json(jsonl.substr(begin, end - begin), place);
    const Json* at = line.is_object() ? line.find("step") : nullptr;
    const Json* kind = line.is_object() ? line.find("kind") : nullptr;
    check<DataError>(at && at->is_number() && (!kind || kind->is_string()), place,
                     ": a line of a log is an object with a step; delete this line, or the file, to go on without it");
    if (at->integer() > step || (kind && kind->string() == "layers" && at->integer() == step)) break;
    kept.train_steps += kind && kind->string() == "train";
    begin = end + 1;
    kept.bytes = static_cast<std::int64_t>(begin);
  }
  return kept;
}
}  // namespace normlab
