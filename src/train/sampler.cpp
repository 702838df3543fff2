// Choosing tokens, and the window that slides.
#include "normlab/train/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace normlab {

std::int32_t choose(std::span<const Real> logits, const SampleOptions& options, Random& random) {
  if (options.temperature == 0) return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t id) { return static_cast<double>(logits[static_cast<std::size_t>(id)]); };
  std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) { return logit(a) > logit(b); });
  if (options.top_k > 0 && options.top_k < static_cast<std::int64_t>(order.size()))
    order.resize(static_cast<std::size_t>(options.top_k));

  std::vector<double> weight(order.size());
  std::ranges::transform(order, weight.begin(), [&](std::int32_t id) {
    return std::exp((logit(id) - logit(order[0])) / options.temperature);
  });
  const double all = std::accumulate(weight.begin(), weight.end(), 0.0);
  double kept = 0;
  std::size_t count = 0;
  while (count < weight.size() && (count == 0 || options.top_p >= 1 || kept < options.top_p * all))
    kept += weight[count++];

  double rest = random.uniform() * kept;
  for (std::size_t i = 0; i < count; ++i) {
    rest -= weight[i];
    if (rest < 0) return order[i];
  }
  return order[count - 1];
}

Sampler::Sampler(const Gpt& model, std::span<const std::int32_t> prompt, const SampleOptions& options, Cache cache)
    : model_(model),
      options_(options),
      random_(options.seed, "sample"),
      cached_(cache == Cache::on && !sight_in_evaluation(spec_of(norm_of(model.config()))).later_positions),
      cache_(model.new_cache()) {
  check(!prompt.empty(), "sampler: a prompt of at least one token is required");
  const std::size_t context = static_cast<std::size_t>(model.config().context_length);
  const auto used = prompt.last(std::min(prompt.size(), context));
  window_.assign(used.begin(), used.end());
}

std::int32_t Sampler::next() {
  const std::int32_t token = choose(last_logits(), options_, random_);
  if (static_cast<std::int64_t>(window_.size()) == model_.config().context_length) {
    window_.erase(window_.begin());
    cache_.filled = 0;
  }
  window_.push_back(token);
  return token;
}

std::vector<Real> Sampler::last_logits() {
  const WithoutGraph without_graph;
  Pass pass;
  if (cached_) pass.cache = &cache_;
  const Index from = cached_ ? cache_.filled : 0, time = static_cast<Index>(window_.size()) - from;
  const Tensor hidden =
      model_.hidden({1, time}, std::span<const std::int32_t>(window_).subspan(static_cast<std::size_t>(from)), pass);
  const Index channels = hidden.shape().last();
  Tensor last(Shape{1, 1, channels});
  std::ranges::copy(hidden.values().last(static_cast<std::size_t>(channels)), last.values().begin());
  const Tensor logits = model_.head(last);
  return {logits.values().begin(), logits.values().end()};
}

std::string StopStrings::push(std::string_view text) {
  if (met_) return {};
  pending_ += text;
  std::size_t end = std::string::npos;
  for (const std::string& each : strings_) end = std::min(end, pending_.find(each));
  if (end != std::string::npos) {
    met_ = true;
    return std::exchange(pending_, {}).substr(0, end);
  }
  end = pending_.size();
  for (const std::string& each : strings_)
    for (std::size_t length = std::min(each.size() - 1, pending_.size()); length > 0; --length)
      if (pending_.ends_with(std::string_view(each).substr(0, length))) end = std::min(end, pending_.size() - length);
  std::string certain = pending_.substr(0, end);
  pending_.erase(0, end);
  return certain;
}

std::string StopStrings::finish() { return std::exchange(pending_, {}); }

std::vector<std::int32_t> default_prompt(const Tokenizer& tokenizer) { return {std::max(0, tokenizer.newline())}; }

std::optional<std::string> sample_text(const Gpt& model, const Tokenizer& tokenizer, std::int64_t count,
                                       const SampleOptions& options, const std::function<bool()>& stop) {
  Sampler sampler(model, default_prompt(tokenizer), options);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) {
    if (stop()) return std::nullopt;
    ids.push_back(sampler.next());
  }
  return tokenizer.decode(ids);
}

}  // namespace normlab
