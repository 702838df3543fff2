// What the outputs of a batch's first sample depend on: later tokens, other samples. Two passes are compared op by op,
// so the first op that sees what it should not is named.
#include <algorithm>
#include <cmath>

#include "check_parts.h"

namespace normlab {
inline namespace f64 {
namespace {

// What an op gave for the first sample, [time, width].
struct OpResult {
  std::string op, place;
  std::vector<Real> values;
};

std::vector<OpResult> first_sample(const CheckInput& input, const Batch& batch, Mode mode) {
  const Gpt model(input.model.config, input.model.vocab_size, input.model.seed);
  set_weights(model.store(), input.model.weights);
  std::vector<OpResult> results;
  const WithoutGraph without_graph;
  const Watch watch([&](const Seen& seen) {
    if (seen.shape.rank() != 3 || seen.shape[0] != batch.rows || seen.shape[1] != batch.time) return;
    const In own = seen.values.first(static_cast<std::size_t>(batch.time * seen.shape[2]));
    results.push_back({std::string(seen.op), std::string(seen.place), {own.begin(), own.end()}});
  });
  Pass pass{.training = mode == Mode::training};
  model.logits(batch, pass);
  return results;
}

// Over the first `positions` positions.
Leak compare(const std::vector<OpResult>& before, const std::vector<OpResult>& after, Index positions, Index time) {
  check(before.size() == after.size(), "check: two passes of one model differ in their ops");
  Leak leak;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::size_t count =
        before[i].values.size() / static_cast<std::size_t>(time) * static_cast<std::size_t>(positions);
    double change = 0;
    for (std::size_t j = 0; j < count; ++j)
      if (before[i].values[j] != after[i].values[j])
        change = std::max(change, std::fabs(before[i].values[j] - after[i].values[j]));
    if (change > 0 && !leak) leak.place = before[i].place, leak.op = before[i].op;
    if (i + 1 == before.size()) leak.largest_change = change;  // the logits come last
  }
  return leak;
}

Index real_positions(const Batch& batch) {
  return batch.valid.empty() ? batch.time : std::count(batch.valid.begin(), batch.valid.begin() + batch.time, 1);
}

}  // namespace

std::optional<Index> changed_position(const Batch& batch) {
  const Index length = real_positions(batch);
  return length < 2 ? std::nullopt : std::optional(std::max<Index>(1, length * 5 / 8));  // token 20 of 32
}

Leak see_later_token(const CheckInput& input, Mode mode) {
  const auto position = changed_position(input.batch);
  if (!position) return {};
  Batch changed = input.batch;
  std::int32_t& token = changed.tokens[static_cast<std::size_t>(*position)];
  token = static_cast<std::int32_t>((token + 1) % input.model.vocab_size);
  return compare(first_sample(input, input.batch, mode), first_sample(input, changed, mode), *position,
                 input.batch.time);
}

Leak see_other_samples(const CheckInput& input, Mode mode) {
  Batch changed = input.other, alone = input.batch;
  const auto take_first = [&](const auto& from, auto& to) {
    if (!from.empty()) std::copy(from.begin(), from.begin() + input.batch.time, to.begin());
  };
  take_first(input.batch.tokens, changed.tokens);
  take_first(input.batch.valid, changed.valid);
  alone.rows = 1;
  alone.tokens.resize(static_cast<std::size_t>(alone.time));
  if (!alone.valid.empty()) alone.valid.resize(static_cast<std::size_t>(alone.time));
  const std::vector<OpResult> company = first_sample(input, input.batch, mode);
  const Index positions = real_positions(input.batch);
  const Leak others = compare(company, first_sample(input, changed, mode), positions, input.batch.time);
  return others ? others : compare(company, first_sample(input, alone, mode), positions, input.batch.time);
}

}  // namespace f64
}  // namespace normlab
