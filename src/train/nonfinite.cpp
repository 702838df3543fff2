// Where the numbers of a failed step first went wrong.
#include "normlab/train/nonfinite.h"

#include <algorithm>
#include <cmath>

namespace normlab {
namespace {

// Thrown out of a repeated step at the first value that is not finite.
struct NonFiniteFound {
  std::string where;
};

std::string nonfinite_of(In values) {
  const auto bad = std::ranges::count_if(values, [](Real value) { return !std::isfinite(value); });
  return bad == 0 ? "" : text(bad, " of ", values.size(), " values");
}

void stop_at_nonfinite(const Seen& seen, const ParameterStore& store) {
  const std::string bad = nonfinite_of(seen.values);
  if (bad.empty()) return;
  std::string of = "an input";
  for (const Named& parameter : store.parameters())
    if (!seen.forward && parameter.tensor.grad().data() == seen.values.data()) of = parameter.name;
  throw NonFiniteFound{text(seen.forward ? "forward: " : text("backward: gradient of ", of, " of "), "op ", seen.op,
                            " in ", seen.place.empty() ? "the loss" : seen.place, ", tensor ", seen.shape, ", ", bad)};
}

}  // namespace

std::string first_nonfinite(const FailedStep& step, const ParameterStore& store,
                            const std::function<void(std::size_t)>& pass) {
  const std::string first = text("step ", step.number, ": the first value that is not finite appeared in the ");
  std::string before;
  const auto add = [&](const char* what, const std::vector<Named>& tensors) {
    if (const Named* bad = find_nonfinite(tensors))
      before += text("; when the step began, ", nonfinite_of(bad->tensor.values()), " of the ", what, " ", bad->name,
                     " were not finite");
  };
  add("parameter", store.parameters());
  add("running average", store.buffers());
  if (step.last_grad_norm) before += text("; the gradient norm of the step before was ", *step.last_grad_norm);
  if (step.number == 1) before += "; no update came before it";
  store.clear_gradients();
  const auto shards = static_cast<std::int64_t>(step.parts.size()) / step.micro_batches;
  for (std::size_t part = 0; part < step.parts.size(); ++part) try {
      const Watch watch([&](const Seen& seen) { stop_at_nonfinite(seen, store); });
      pass(part);
    } catch (const NonFiniteFound& found) {
      std::vector<std::string> starts;
      for (const Index start : step.parts[part].starts) starts.push_back(number(start));
      const auto i = static_cast<std::int64_t>(part);
      return text(first, found.where, "; the rows of ", shards > 1 ? text("shard ", i % shards, " of ") : "",
                  "micro-batch ", i / shards, " begin at training tokens ", join(starts, " "), before);
    }
  return text(first, "norm of all gradients together", before);
}

}  // namespace normlab
