// The checks together, and their report. Compiled in double alone.
#include "normlab/lab/check/check.h"

#include <algorithm>
#include <cmath>

#include "check_parts.h"
#include "normlab/chart/table.h"
#include "normlab/nn/norm.h"

namespace normlab {
inline namespace f64 {
namespace {

// With logits that are N(0, s^2) and know nothing of the target, ln sum exp = ln V + s^2 / 2.
CheckItem check_initial_loss(const CheckInput& input) {
  const Gpt model(input.model.config, input.model.vocab_size, input.model.seed);
  Pass pass{.training = true};
  const WithoutGraph without_graph;
  const Tensor logits = model.logits(input.batch, pass);
  const std::size_t vocab = static_cast<std::size_t>(input.model.vocab_size);
  std::vector<Real> losses(input.batch.targets.size());
  ops::cross_entropy(logits, input.batch.targets, 1, losses);
  double loss = 0, variance = 0, rows = 0;
  for (std::size_t row = 0; row < losses.size(); ++row) {
    if (input.batch.targets[row] == kIgnore) continue;
    const In own = logits.values().subspan(row * vocab, vocab);
    double sum = 0, squares = 0;
    for (const Real value : own) sum += value, squares += value * value;
    const double mean = sum / static_cast<double>(vocab);
    variance += squares / static_cast<double>(vocab) - mean * mean;
    loss += losses[row];
    rows += 1;
  }
  loss /= rows;
  variance /= rows;
  const double ln_v = std::log(static_cast<double>(vocab)), expected = ln_v + variance / 2;
  CheckItem item{"initial loss", CheckItem::Status::ok, ""};
  item.detail = text("the loss is ", fixed(loss, 3), "; ln V + (variance of the logits) / 2 = ", fixed(ln_v, 3), " + ",
                     fixed(variance / 2, 3), " = ", fixed(expected, 3));
  // Logits of that spread make the mean over the batch vary about as much.
  if (std::fabs(loss - expected) <= 0.05 * expected + 3 * std::sqrt(variance / rows)) return item;
  item.status = CheckItem::Status::warning;
  item.detail += loss > expected ? ": the fresh model prefers wrong tokens" : ": the fresh model knows something";
  if (input.model.config.tie_embeddings) item.detail += " (the head is the embedding: a token's own logit stands out)";
  return item;
}

CheckItem check_all_learn(const CheckInput& input) {
  LossSurface surface(input.model, input.batch);
  LossSurface::Vector gradient;
  surface.loss_and_gradient(gradient);
  const LossSurface::Vector noise = rounding_of_gradient(surface, surface.parameters());
  double all = 0;
  for (const double value : gradient) all += value * value;
  std::vector<std::string> without, rounding;
  std::size_t begin = 0;
  for (const Named& parameter : surface.model().store().parameters()) {
    double own = 0, uncertain = 0;
    const std::size_t end = begin + static_cast<std::size_t>(parameter.tensor.shape().numel());
    for (; begin < end; ++begin) own += gradient[begin] * gradient[begin], uncertain += noise[begin] * noise[begin];
    if (own == 0 && uncertain == 0)
      without.push_back(parameter.name);
    else if (own <= 1e-24 * all &&
             own < 1e6 * uncertain)  // 1e-12 of the norm: what rounding in double leaves of a zero
      rounding.push_back(parameter.name);
  }
  const std::size_t tensors = surface.model().store().parameters().size();
  CheckItem item{"every parameter learns", CheckItem::Status::ok, text("a gradient reaches all ", tensors, " tensors")};
  const auto listed = [](std::vector<std::string> names) {
    const std::size_t count = names.size();
    if (count > 4) names.resize(4);
    return text(join(names, ", "), count > 4 ? text(" and ", count - 4, " more") : "");
  };
  if (!rounding.empty()) {
    item.status = CheckItem::Status::warning;
    item.detail = text("only rounding reaches ", rounding.size(), " of ", tensors,
                       " tensors; a norm after them takes out what they add: ", listed(rounding));
  }
  if (!without.empty()) {
    item.status = CheckItem::Status::failed;
    item.detail = text("no gradient reaches ", without.size(), " of ", tensors, " tensors: ", listed(without));
    if (const std::string why = few_values(input.model.config, input.batch); !why.empty())
      item.detail += text(" (", why, ")");
  }
  return item;
}

CheckItem causality_item(const CheckInput& input, Mode mode, const Leak& leak) {
  const bool training = mode == Mode::training;
  CheckItem item{training ? "causality, training" : "causality, evaluation", CheckItem::Status::ok, ""};
  const auto position = changed_position(input.batch);
  if (!position) return item.detail = "the batch's first sample has no earlier token to look at", item;
  item.detail = text("with token ", *position, " of ", input.batch.time,
                     " changed, every earlier output is bit for bit the same");
  if (!leak) return item;
  item.status = CheckItem::Status::failed;
  item.detail = text("LEAK: with token ", *position, " of ", input.batch.time,
                     " changed, earlier outputs move, first in ", leak.place, " (op ", leak.op,
                     "); the largest change of an earlier logit is ", significant(leak.largest_change, 3), ". ");
  item.detail += training ? "While it trains, a token is told about those that follow, which it should predict: the "
                            "training loss flatters, and generating, where nothing follows, is another task"
                          : "A text's loss counts on tokens that are not written yet when it is generated";
  return item;
}

CheckItem independence_item(Mode mode, const Leak& leak) {
  const bool training = mode == Mode::training;
  CheckItem item{training ? "batch independence, training" : "batch independence, evaluation", CheckItem::Status::ok,
                 "a sample's outputs are bit for bit the same alone and in any company"};
  if (!leak) return item;
  item.status = training ? CheckItem::Status::warning : CheckItem::Status::failed;
  item.detail = text("a sample's outputs depend on the other samples, first in ", leak.place, " (op ", leak.op,
                     "); the largest change of a logit is ", significant(leak.largest_change, 3));
  return item;
}

CheckItem power_warmup_item(const CheckInput& input, const Leak& leak) {
  return {
      "causality, power's warm-up", CheckItem::Status::warning,
      text("during the first ", input.model.config.norm_warmup_steps,
           " training passes (model.norm_warmup_steps) a token sees later ones and other samples; the largest change "
           "of an earlier logit is ",
           significant(leak.largest_change, 3))};
}

constexpr Index kForever = 1000000000;

}  // namespace

CheckReport run_checks(const CheckInput& input) {
  CheckReport report;
  // PowerNorm looks at the batch during its warm-up, whose gradient is the loss's; after it, at running averages.
  const bool is_power = norm_of(input.model.config) == NormKind::power;
  CheckInput warming = input, steady = input;
  if (is_power) {
    warming.model.config.norm_warmup_steps = kForever;
    steady.model.config.norm_warmup_steps = 0;
  }
  report.items.push_back(check_gradients(warming, Mode::training));
  if (!Gpt(input.model.config, input.model.vocab_size, 0).store().buffers().empty())
    report.items.push_back(check_gradients(input, Mode::evaluation));
  if (is_power) report.items.push_back(check_power_backward(input.model.config));
  if (input.model.weights.empty()) report.items.push_back(check_initial_loss(input));
  report.items.push_back(check_all_learn(warming));
  report.later_token = {see_later_token(steady, Mode::training), see_later_token(steady, Mode::evaluation)};
  report.items.push_back(causality_item(input, Mode::training, report.later_token.training));
  report.items.push_back(causality_item(input, Mode::evaluation, report.later_token.evaluation));
  report.other_samples = {see_other_samples(steady, Mode::training), see_other_samples(steady, Mode::evaluation)};
  report.items.push_back(independence_item(Mode::training, report.other_samples.training));
  report.items.push_back(independence_item(Mode::evaluation, report.other_samples.evaluation));
  if (is_power && input.model.config.norm_warmup_steps > 0)
    report.items.push_back(power_warmup_item(input, see_later_token(warming, Mode::training)));
  if (norm_of(input.model.config) != NormKind::none) report.invariance = measure_invariance(steady.model.config);
  return report;
}

}  // namespace f64
}  // namespace normlab
