// The whole family of norms in double: an independent implementation's figures, the derivative of every pair of norm
// and placement, and PowerNorm's own backward.
#include <algorithm>
#include <cmath>
#include <optional>

#include "norm_pairs.h"
#include "normlab/formats/json.h"
#include "normlab/host/files.h"
#include "normlab/nn/gpt.h"
#include "support.h"

using namespace normlab;

namespace {

void flatten(const Json& json, std::vector<double>& out) {
  if (!json.is_array()) return out.push_back(json.real());
  for (const Json& element : json.elements()) flatten(element, out);
}
std::vector<double> numbers(const Json& json) {
  std::vector<double> out;
  flatten(json, out);
  return out;
}

void set(const Tensor& tensor, const std::vector<double>& values) {
  REQUIRE(tensor.values().size() == values.size());
  std::ranges::copy(values, tensor.values().begin());
}

// Sums of a few numbers of size 4 in another order than PyTorch's.
void check_near(const std::string& what, In ours, const Json& theirs) {
  const std::vector<double> right = numbers(theirs);
  REQUIRE(ours.size() == right.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    INFO(what << " " << i);
    CHECK(std::fabs(ours[i] - right[i]) < 1e-13);
  }
}

const Tensor& named(const std::vector<Named>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &Named::name);
  REQUIRE(found != tensors.end());
  return found->tensor;
}

// dy . y, whose gradient by y is dy.
Tensor product(const Tensor& y, const std::vector<double>& dy) {
  Tensor sum(Shape{});
  sum.values()[0] = 0;
  return record("product", sum, {y}, [=](const Tensor&) {
    const Grad to = y.grad_sink();
    for (std::size_t i = 0; i < dy.size(); ++i) to.values[i] = (to.add ? to.values[i] : 0) + dy[i];
  });
}

struct Fixture {
  Fixture() : file(parse_json(read_file(NORMLAB_SOURCE_DIR "/tests/nn/norm_fixtures.json"), "norm_fixtures.json")) {}

  void check(const std::string& entry, NormKind kind, std::int64_t warmup_steps,
             const std::function<void(const ParameterStore&)>& begin,
             const std::vector<std::pair<std::string, std::string>>& state) const {
    INFO(entry);
    const Json& right = file.at("norms").at(entry);
    ModelConfig config;
    config.norm = kind;
    config.d_model = 4;
    config.norm_eps = file.at("eps").real();
    config.norm_warmup_steps = warmup_steps;
    config.resolve();
    ParameterStore store(1);
    const Norm norm(Scope(store) / "n", config);
    const Json& parameters = right.at("params");
    for (const auto& [letter, name] : kParameters)
      if (const Json* values = parameters.find(letter))
        set(named(store.parameters(), name), numbers(values->elements().at(0)));
    begin(store);
    const Tensor x = parameter_tensor({2, 3, 4});
    set(x, numbers(file.at("x")));
    Pass training, evaluation;
    training.training = true;
    const Tensor y = norm.forward(x, training);
    check_near("y", y.values(), right.at("y"));
    backward(product(y, numbers(file.at("dy"))));
    check_near("dx", x.grad(), right.at("dx"));
    for (const auto& [letter, name] : kParameters)
      if (const Json* values = parameters.find(letter))
        check_near(name, named(store.parameters(), name).grad(), values->elements().at(1));
    for (const auto& [theirs, ours] : state)
      check_near(ours, named(store.buffers(), ours).values(), right.at("buffers_after").at(theirs));
    check_near("y in evaluation", norm.forward(x, evaluation).values(), right.at("y_eval"));
  }

  const std::vector<std::pair<std::string, std::string>> kParameters{
      {"g", "n.weight"}, {"b", "n.bias"}, {"a", "n.alpha"}};
  const Json file;
};

}  // namespace

TEST_CASE("the norms agree with an independent implementation: values, gradients, state, evaluation", "[nn]") {
  const Fixture fixture;
  const auto fresh = [](const ParameterStore&) {};
  const std::vector<std::pair<std::string, std::string>> batch{{"rm", "n.running_mean"}, {"rv", "n.running_var"}},
      power{{"psi2", "n.running_square"}, {"nu", "n.running_projection"}};
  fixture.check("layer", NormKind::layer, 100, fresh, {});
  fixture.check("rms", NormKind::rms, 100, fresh, {});
  fixture.check("scale_g2", NormKind::scale, 100, fresh, {});
  fixture.check("batch_m0.1_fresh", NormKind::batch, 100, fresh, batch);
  fixture.check("dyt_a0.5", NormKind::dyt, 100, fresh, {});
  fixture.check("power_warmup_first_step", NormKind::power, 100, fresh, power);
  fixture.check(
      "power_running(psi2=[.5,1,1.5,2],nu=[.1,-.2,0,.3],alpha=.9/.9)", NormKind::power, 0,
      [](const ParameterStore& store) {
        set(named(store.buffers(), "n.running_square"), {.5, 1, 1.5, 2});
        set(named(store.buffers(), "n.running_projection"), {.1, -.2, 0, .3});
      },
      power);
}

TEST_CASE("PowerNorm after its warm-up is its paper's formula, step by step and under a mask", "[nn]") {
  const Index B = 2, T = 3;
  const std::vector<std::uint8_t> mask{1, 1, 1, 1, 0, 0};
  const double eps = 1e-5, m = 0.1, real = 4;
  for (const Index C : {1, 7, 9}) {
    ModelConfig config;
    config.norm = NormKind::power;
    config.d_model = C;
    config.n_heads = 1;
    config.norm_warmup_steps = 0;
    config.resolve();
    ParameterStore store(1);
    const Norm norm(Scope(store) / "n", config);
    const auto channels = static_cast<std::size_t>(C);
    std::vector<double> P(channels, 1), n(channels, 0);
    for (std::uint64_t step = 0; step < 3; ++step) {
      const Tensor x = random_tensor({B, T, C}, 10 + step), dy = random_tensor({B, T, C}, 20 + step);
      Pass pass;
      pass.training = true;
      pass.mask = mask;
      const Tensor y = norm.forward(x, pass);
      backward(product(y, {dy.values().begin(), dy.values().end()}));
      for (std::size_t c = 0; c < channels; ++c) {
        double square = 0, projection = 0;
        const double r = 1 / std::sqrt(P[c] + eps);
        for (std::size_t row = 0; row < 6; ++row) {
          const std::size_t i = row * channels + c;
          const double z = x.values()[i] * r, t = dy.values()[i] - n[c] * z;  // gain 1, bias 0
          CHECK(std::fabs(y.values()[i] - z) < 1e-14);
          CHECK(std::fabs(x.grad()[i] - t * r) < 1e-14);
          if (mask[row]) square += x.values()[i] * x.values()[i] / real, projection += t * z / real;
        }
        P[c] = (1 - m) * P[c] + m * square;
        n[c] += m * projection;
        CHECK(std::fabs(named(store.buffers(), "n.running_square").values()[c] - P[c]) < 1e-14);
        CHECK(std::fabs(named(store.buffers(), "n.running_projection").values()[c] - n[c]) < 1e-14);
      }
    }
    CHECK(named(store.buffers(), "n.updates").values()[0] == 3);
  }
}

namespace {

constexpr Index kVocab = 5, kRows = 3, kTime = 3;

ModelConfig small_model(NormPair pair, Index channels) {
  ModelConfig config;
  config.norm = pair.norm;
  config.placement = pair.placement;
  config.n_layers = 1;
  config.n_heads = 1;
  config.d_model = channels;
  config.d_ff = 5;
  config.context_length = kTime;
  config.init = Initialisation::xavier;
  config.norm_groups = channels == 9 || channels == 33 ? 3 : channels;
  if (channels == 8) config.norm_groups = 2;
  config.norm_warmup_steps = 1000000;  // power: exact only there and in evaluation
  config.resolve();
  return config;
}

// The derivative of the loss along a random direction in each parameter tensor: every element has its part in it, and a
// wrong one shows, but for chance. The difference over four points is off by h^4 times a fifth derivative, and by what
// rounding does to a loss of 2 after norms that divide by small deviations, 2e-13, over h = 1e-5.
void check_model(const Gpt& model, bool training) {
  const Batch batch{kRows, kTime, {3, 0, 2, 2, 4, 1, 1, 3, 0}, {0, 2, 1, 4, 1, 3, 3, 0, 2}, {}, {}};
  const auto loss_of = [&] {
    Pass pass{.training = training};
    return model.loss(batch, pass);
  };
  model.store().clear_gradients();
  backward(loss_of());
  const WithoutGraph without_graph;
  std::uint64_t seed = 0;
  for (const Named& parameter : model.store().parameters()) {
    const Out values = parameter.tensor.values();
    const std::vector<Real> kept(values.begin(), values.end());
    Random random(++seed, "direction");
    std::vector<Real> direction(kept.size());
    for (Real& value : direction) value = random.normal();
    double analytic = 0;
    for (std::size_t i = 0; i < kept.size(); ++i)
      analytic += direction[i] * (parameter.tensor.grad().empty() ? 0 : parameter.tensor.grad()[i]);
    const double h = 1e-5;
    const auto loss_at = [&](double along) {
      for (std::size_t i = 0; i < kept.size(); ++i) values[i] = kept[i] + along * direction[i];
      return static_cast<double>(loss_of().item());
    };
    const double numeric = (8 * (loss_at(h) - loss_at(-h)) - (loss_at(2 * h) - loss_at(-2 * h))) / (12 * h);
    std::ranges::copy(kept, values.begin());
    INFO(parameter.name << ": analytic " << analytic << ", numeric " << numeric);
    CHECK(std::fabs(numeric - analytic) <= 3e-8 + 1e-6 * std::fabs(numeric));
  }
}

}  // namespace

TEST_CASE("every norm in every place has the derivative that finite differences give, in training and in evaluation",
          "[nn]") {
  CHECK(legal_pairs().size() == 54);  // 66, less 3 without a norm to place and 9 without a place
  for (const NormPair pair : legal_pairs())
    for (const Index channels : {1, 7, 8, 9, 33}) {
      const Gpt model(small_model(pair, channels), kVocab, 1);
      for (const Named& parameter : model.store().parameters()) {  // gains and biases that are not 1 and 0
        Random random(7, parameter.name);
        for (Real& value : parameter.tensor.values()) value += 0.3 * random.normal();
      }
      INFO(config::to_string(pair.norm) << ' ' << config::to_string(pair.placement) << ", " << channels << " channels");
      check_model(model, true);
      if (spec_of(pair.norm).running != Running::none) check_model(model, false);
    }
}
