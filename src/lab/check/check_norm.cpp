// What a norm's output does not depend on, measured on random input.
#include <algorithm>
#include <cmath>
#include <functional>

#include "check_parts.h"
#include "normlab/nn/norm.h"

namespace normlab {
inline namespace f64 {
namespace {

constexpr Index kBatch = 8, kContext = 8;

using Values = std::vector<Real>;

Values random_values(std::size_t count, std::string_view name) {
  Random random(1337, name);
  Values values(count);
  for (Real& value : values) value = 0.3 + 1.5 * random.normal();
  return values;
}

class NormAlone {
 public:
  explicit NormAlone(const ModelConfig& config)
      : store_(1337), norm_(Scope(store_) / "norm", config), channels_(config.d_model) {}

  // [kBatch, kContext, channels]; running averages are put back.
  Values forward(const Values& x, Mode mode) const {
    Tensor input(Shape{kBatch, kContext, channels_});
    std::ranges::copy(x, input.values().begin());
    const KeptBuffers buffers(store_);
    Pass pass{.training = mode == Mode::training};
    const Tensor y = norm_.forward(input, pass);
    buffers.restore();
    return Values(y.values().begin(), y.values().end());
  }

 private:
  ParameterStore store_;
  Norm norm_;
  Index channels_;
};

// Over the elements where `counts(sample, position)`.
double movement(const Values& before, const Values& after, Index channels,
                const std::function<bool(Index, Index)>& counts) {
  double moved = 0, size = 0;
  for (Index row = 0; row < kBatch * kContext; ++row) {
    if (!counts(row / kContext, row % kContext)) continue;
    for (Index c = 0; c < channels; ++c) {
      const std::size_t i = static_cast<std::size_t>(row * channels + c);
      moved += (after[i] - before[i]) * (after[i] - before[i]);
      size += before[i] * before[i];
    }
  }
  return size > 0 ? std::sqrt(moved / size) : 0;
}

// The fewest values that one statistic is taken over.
Index fewest_values(const ModelConfig& config, const Batch& batch) {
  const Mask mask = config.norm_padding == NormPadding::ignore ? Mask(batch.valid) : Mask();
  const ops::NormView view =
      view_of(spec_of(norm_of(config)).reduce, config.norm_groups, {batch.rows, batch.time, config.d_model});
  std::vector<Index> values(static_cast<std::size_t>(view.groups()), 0);
  for (Index i = 0; i < view.size(); ++i)
    values[static_cast<std::size_t>(view.group_of(i))] += is_real(mask, i / view.channels);
  std::erase(values, 0);
  return *std::ranges::min_element(values);
}

}  // namespace

std::string few_values(const ModelConfig& config, const Batch& batch) {
  if (!spec_of(norm_of(config)).centred) return {};
  const Index values = fewest_values(config, batch);
  if (values > 2) return {};
  return text("a statistic of model.norm ", config::to_string(config.norm), " is taken over ",
              values == 1 ? "one value here, which is its own mean: the norm gives its bias whatever comes in"
                          : "two values here, which it makes 1 and -1 whatever they were: the loss goes in steps");
}

std::vector<InvarianceRow> measure_invariance(const ModelConfig& config) {
  const Index channels = config.d_model;
  const NormAlone norm(config);
  const Values x = random_values(static_cast<std::size_t>(kBatch * kContext * channels), "input");
  const Values fresh = random_values(x.size(), "exchanged");
  struct Change {
    const char* name;
    std::function<Real(std::size_t i, Index sample, Index position)> changed;
    std::function<bool(Index sample, Index position)> counts;  // the elements compared
  };
  const auto everywhere = [](Index, Index) { return true; };
  const Change changes[] = {
      {"input times 3", [&](std::size_t i, Index, Index) { return 3 * x[i]; }, everywhere},
      {"input plus 1", [&](std::size_t i, Index, Index) { return x[i] + 1; }, everywhere},
      {"other samples exchanged", [&](std::size_t i, Index sample, Index) { return sample == 0 ? x[i] : fresh[i]; },
       [](Index sample, Index) { return sample == 0; }},
      {"later tokens exchanged",
       [&](std::size_t i, Index, Index position) { return position < kContext / 2 ? x[i] : fresh[i]; },
       [](Index, Index position) { return position < kContext / 2; }},
  };
  std::vector<InvarianceRow> rows;
  for (const Change& change : changes) {
    Values changed(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Index row = static_cast<Index>(i) / channels;
      changed[i] = change.changed(i, row / kContext, row % kContext);
    }
    const auto moves = [&](Mode mode) {
      return movement(norm.forward(x, mode), norm.forward(changed, mode), channels, change.counts);
    };
    rows.push_back({change.name, moves(Mode::training), moves(Mode::evaluation)});
  }
  return rows;
}

// z = x / sqrt(P + eps), g = gain dy, t = g - n z; dx = t / sqrt(P + eps), dgain = sum dy z, and then
// n <- n + m mean(t z).
CheckItem check_power_backward(const ModelConfig& config) {
  ModelConfig steady = config;
  steady.norm = NormKind::power;
  steady.norm_warmup_steps = 0;
  ParameterStore store(1337);
  const Norm norm(Scope(store) / "norm", steady);
  const auto tensor = [&](const std::vector<Named>& from, const char* name) {
    return std::ranges::find(from, text("norm.", name), &Named::name)->tensor.values();
  };
  const std::size_t channels = static_cast<std::size_t>(config.d_model), rows = kBatch * kContext;
  const Values values = random_values(rows * channels, "input"), dy = random_values(rows * channels, "dy");
  const Values P = random_values(channels, "running square"), n = random_values(channels, "running projection");
  std::ranges::transform(P, tensor(store.buffers(), "running_square").begin(),
                         [](Real value) { return value * value; });
  std::ranges::copy(n, tensor(store.buffers(), "running_projection").begin());

  const Tensor x = parameter_tensor(Shape{kBatch, kContext, config.d_model}), loss(Shape{});
  std::ranges::copy(values, x.values().begin());
  Pass pass{.training = true};
  const Tensor y = norm.forward(x, pass);
  loss.values()[0] = 0;  // sum dy y; nobody reads it
  backward(
      record("weighted_sum", loss, {y}, [=](const Tensor&) { std::ranges::copy(dy, y.grad_sink().values.begin()); }));

  const In gain = tensor(store.parameters(), "weight"), dgain = store.parameters()[0].tensor.grad();
  double worst = 0;
  for (std::size_t c = 0; c < channels; ++c) {
    const double root = std::sqrt(P[c] * P[c] + config.norm_eps);
    double gain_sum = 0, projection = 0;
    for (std::size_t i = c; i < values.size(); i += channels) {
      const double z = values[i] / root, t = gain[c] * dy[i] - n[c] * z;
      worst = std::max(worst, std::fabs(x.grad()[i] - t / root) / (1 + std::fabs(t / root)));
      gain_sum += dy[i] * z;
      projection += t * z / static_cast<double>(rows);
    }
    worst = std::max(worst, std::fabs(dgain[c] - gain_sum) / (1 + std::fabs(gain_sum)));
    const double expected = n[c] + config.norm_momentum * projection;
    worst = std::max(worst, std::fabs(tensor(store.buffers(), "running_projection")[c] - expected));
  }
  CheckItem item{"gradients, power after its warm-up", CheckItem::Status::ok, ""};
  item.detail = text("no derivative of the loss, but the paper's formula: largest error ", significant(worst, 2));
  if (!(worst <= 1e-9)) item.status = CheckItem::Status::failed;  // sums of 64 doubles
  return item;
}

}  // namespace f64
}  // namespace normlab
