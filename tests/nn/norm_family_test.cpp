// The whole family of norms as a user meets it: what each sees, what is refused, DeepNorm's beginning, padding,
// training.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "norm_pairs.h"
#include "normlab/nn/gpt.h"
#include "normlab/optim/optimizer.h"
#include "normlab/run/run.h"
#include "normlab/train/sampler.h"
#include "support.h"

using namespace normlab;

namespace {

constexpr Index kTime = 6, kChannels = 12;

ModelConfig small(NormPair pair) {
  ModelConfig config;
  config.norm = pair.norm;
  config.placement = pair.placement;
  config.n_layers = 2;
  config.n_heads = 2;
  config.d_model = kChannels;
  config.context_length = kTime;
  config.norm_warmup_steps = 5;
  config.resolve();
  return config;
}

// Which outputs of [2, T, C] change when the last position of the first sample does, from the same running state.
Sight seen(const ParameterStore& store, const Norm& norm, bool training) {
  const KeptBuffers buffers(store);
  const Tensor x = random_tensor({2, kTime, kChannels}, 1);
  Pass pass;
  pass.training = training;
  const Tensor before = norm.forward(x, pass);
  for (Index c = 0; c < kChannels; ++c) x.values()[static_cast<std::size_t>((kTime - 1) * kChannels + c)] += Real(c);
  buffers.restore();
  const Tensor after = norm.forward(x, pass);
  const auto changed = [&](Index from, Index to) {
    const auto first = static_cast<std::size_t>(from * kChannels),
               count = static_cast<std::size_t>((to - from) * kChannels);
    return !std::ranges::equal(before.values().subspan(first, count), after.values().subspan(first, count));
  };
  return {changed(0, kTime - 1), changed(kTime, 2 * kTime)};
}

}  // namespace

TEST_CASE("a norm sees what its table says, in training and in evaluation", "[nn]") {
  for (const NormKind kind : kAllNorms) {
    if (kind == NormKind::none) continue;
    INFO(config::to_string(kind));
    ParameterStore store(1);
    const Norm norm(Scope(store) / "n", small({kind, Placement::pre}));
    const Sight training = sight_in_training(spec_of(kind)), evaluation = sight_in_evaluation(spec_of(kind));
    const Sight measured = seen(store, norm, true), in_evaluation = seen(store, norm, false);
    CHECK(measured.later_positions == training.later_positions);
    CHECK(measured.other_samples == training.other_samples);
    CHECK(in_evaluation.later_positions == evaluation.later_positions);
    CHECK(in_evaluation.other_samples == evaluation.other_samples);
  }
  const auto leaks = [](NormKind kind) { return bool(sight_in_training(spec_of(kind))); };
  CHECK(std::ranges::count_if(kAllNorms, leaks) == 5);
  CHECK(sight_in_evaluation(spec_of(NormKind::instance)).later_positions);
  CHECK(sight_in_evaluation(spec_of(NormKind::layer_seq)).later_positions);
  CHECK(!sight_in_training(spec_of(NormKind::batch_step)).later_positions);
}

TEST_CASE("PowerNorm sees nobody once its warm-up is over", "[nn]") {
  ParameterStore store(1);
  const Norm norm(Scope(store) / "n", small({NormKind::power, Placement::pre}));
  for (int step = 0; step < 5; ++step) CHECK(seen(store, norm, true));
  CHECK(!seen(store, norm, true));
}

TEST_CASE("pairs of norm and placement that mean nothing are refused with the reason", "[nn]") {
  const auto refuse = [](NormKind norm, Placement placement, const char* reason) {
    REQUIRE_THROWS_WITH(small({norm, placement}), ContainsSubstring(reason));
  };
  refuse(NormKind::none, Placement::deepnorm, "needs a norm to undo it");
  refuse(NormKind::none, Placement::sandwich, "choose the placement none");
  refuse(NormKind::none, Placement::res_post, "choose the placement none");
  refuse(NormKind::batch, Placement::none, "has no place for model.norm batch");
  ModelConfig config = small({NormKind::layer, Placement::pre});
  config.norm = NormKind::group;
  config.norm_groups = 5;
  REQUIRE_THROWS_WITH(config.resolve(), ContainsSubstring("model.norm_groups: 5 does not divide model.d_model, 12"));
  RunConfig run;
  run.model.norm = NormKind::batch_step;
  run.train.batch_size = 1;
  REQUIRE_THROWS_WITH(run.resolve(), ContainsSubstring("train.batch_size: 1 leaves model.norm batch_step one row"));
  run.model.norm = NormKind::batch;
  run.model.context_length = 1;
  REQUIRE_THROWS_WITH(run.resolve(), ContainsSubstring("leaves model.norm batch one position"));
}

TEST_CASE("every example in configs/ is a configuration, and every norm and placement has one", "[nn]") {
  std::vector<NormKind> norms;
  std::vector<Placement> placements;
  for (const auto& entry : std::filesystem::directory_iterator(NORMLAB_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path().string());
    const RunConfig config = load_run_config(entry.path().string(), {}).config;
    norms.push_back(config.model.norm);
    placements.push_back(config.model.placement);
  }
  for (const NormKind norm : kAllNorms)  // instance is a line in layernorm-over-sequence.yaml
    CHECK((std::ranges::count(norms, norm) > 0 || norm == NormKind::instance));
  for (const Placement placement : kAllPlacements) CHECK(std::ranges::count(placements, placement) > 0);
}

TEST_CASE("every norm in every place trains: thirty steps lower the loss of a batch", "[nn]") {
  Batch batch{3,
              kTime,
              {3, 0, 2, 2, 4, 1, 1, 3, 0, 4, 2, 0, 0, 1, 4, 3, 3, 2},
              {0, 2, 2, 4, 1, 3, 3, 0, 4, 2, 0, 1, 1, 4, 3, 3, 2, 0},
              {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0},
              {}};
  for (std::size_t i = 0; i < batch.valid.size(); ++i)
    if (batch.valid[i] == 0) batch.targets[i] = kIgnore;
  for (const NormPair pair : legal_pairs()) {
    INFO(config::to_string(pair.norm) << ' ' << config::to_string(pair.placement));
    const Gpt model(small(pair), 5, 1);
    OptimizerConfig config;
    Optimizer optimizer(config, model.store());
    std::vector<double> losses;
    for (std::int64_t step = 1; step <= 30; ++step) {
      model.store().clear_gradients();
      Pass pass{.training = true};
      const Tensor loss = model.loss(batch, pass);
      backward(loss);
      losses.push_back(loss.item());
      optimizer.step(step, 1e-2, clip_coefficient(1, gradient_norm(model.store())));
    }
    CHECK(losses.back() < losses.front() - 0.05);
    CHECK(find_nonfinite(model.store().buffers()) == nullptr);
  }
}

TEST_CASE("the cache changes no text, whatever the norm", "[nn]") {
  const std::vector<std::int32_t> prompt{3, 0, 2};
  SampleOptions options;
  options.temperature = 1;
  for (const NormKind kind : kAllNorms) {
    INFO(config::to_string(kind));
    const Gpt model(small({kind, Placement::pre}), 11, 1);
    for (const Named& buffer : model.store().buffers())  // position by position different, and above 0
      for (std::size_t i = 0; i < buffer.tensor.values().size(); ++i)
        buffer.tensor.values()[i] += static_cast<Real>(i % 7) / 10;
    Sampler cached(model, prompt, options), plain(model, prompt, options, Sampler::Cache::off);
    for (int i = 0; i < 15; ++i) REQUIRE(cached.next() == plain.next());
  }
}

TEST_CASE("DeepNorm scales the stream by (2L)^(1/4), and begins smaller but for query and key", "[nn]") {
  ModelConfig config = small({NormKind::layer, Placement::deepnorm});
  config.d_model = 64;
  config.d_ff.reset();
  config.init = GENERATE(Initialisation::gpt2, Initialisation::xavier);
  config.activation = MlpActivation::swiglu;
  config.resolve();
  CHECK(config.residual_scale() == Approx(std::sqrt(2.0)));  // 4^(1/4)
  CHECK(config.branch_gain() == Approx(0.5));                // 16^(-1/4)
  const Gpt model(config, 50, 1);
  const auto deviation = [&](const std::string& name, std::size_t first, std::size_t last) {
    const auto found = std::ranges::find(model.store().parameters(), name, &Named::name);
    REQUIRE(found != model.store().parameters().end());
    const auto size = found->tensor.values().size();
    double squares = 0;
    for (std::size_t i = size * first / 3; i < size * last / 3; ++i)
      squares += std::pow(static_cast<double>(found->tensor.values()[i]), 2);
    return std::sqrt(squares / static_cast<double>(size * last / 3 - size * first / 3));
  };
  const bool xavier = config.init == Initialisation::xavier;
  const double square = xavier ? std::sqrt(2.0 / 128) : 0.02, wide = xavier ? std::sqrt(2.0 / 320) : 0.02;
  const auto near = [](double expected) { return Approx(expected).epsilon(0.05); };  // 4,096 draws: 1.1%
  CHECK(deviation("blocks.0.attn.qkv.weight", 0, 2) == near(square));
  CHECK(deviation("blocks.0.attn.qkv.weight", 2, 3) == near(square / 2));
  CHECK(deviation("blocks.1.attn.out.weight", 0, 3) == near(square / 2));
  for (const char* name : {"blocks.0.mlp.up.weight", "blocks.1.mlp.gate.weight", "blocks.0.mlp.down.weight"})
    CHECK(deviation(name, 0, 3) == near(wide / 2));
}

TEST_CASE("a sandwich has two norms a sublayer, res_post one, and both a last one", "[nn]") {
  const auto has = [](Placement placement, const std::string& name) {
    const Gpt model(small({NormKind::rms, placement}), 5, 1);
    return std::ranges::count(model.store().parameters(), name, &Named::name) == 1;
  };
  CHECK(has(Placement::sandwich, "blocks.1.mlp_norm.weight"));
  CHECK(has(Placement::sandwich, "blocks.1.mlp_out_norm.weight"));
  CHECK(has(Placement::sandwich, "final_norm.weight"));
  CHECK(has(Placement::res_post, "blocks.1.attn_norm.weight"));
  CHECK(!has(Placement::res_post, "blocks.1.attn_out_norm.weight"));
  CHECK(has(Placement::res_post, "final_norm.weight"));
  CHECK(!has(Placement::deepnorm, "final_norm.weight"));
}

TEST_CASE("ScaleNorm begins as RMSNorm, and a vector below eps is divided by eps", "[nn]") {
  ParameterStore store(1);
  const Norm scale(Scope(store) / "scale", small({NormKind::scale, Placement::pre})),
      rms(Scope(store) / "rms", small({NormKind::rms, Placement::pre}));
  const Tensor x = random_tensor({2, kTime, kChannels}, 1);
  Pass pass;
  const Tensor a = scale.forward(x, pass), b = rms.forward(x, pass);
  for (std::size_t i = 0; i < a.values().size(); ++i)
    CHECK(std::fabs(a.values()[i] - b.values()[i]) < 1e-4);  // eps 1e-5 next to a mean square of 0.3 or more
  std::ranges::fill(x.values(), Real(0));
  x.values()[0] = Real(1e-6);
  CHECK(scale.forward(x, pass).values()[0] == Approx(0.1 * std::sqrt(12.0)).epsilon(1e-5));
}

TEST_CASE("model.norm_padding count lets padded positions into the statistics", "[nn]") {
  const std::vector<std::uint8_t> mask{1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 0};
  for (const NormKind kind :
       {NormKind::batch, NormKind::batch_step, NormKind::instance, NormKind::layer_seq, NormKind::power}) {
    INFO(config::to_string(kind));
    for (const NormPadding padding : {NormPadding::ignore, NormPadding::count}) {
      ModelConfig config = small({kind, Placement::pre});
      config.norm_padding = padding;
      ParameterStore store(1);
      const Norm norm(Scope(store) / "n", config);
      const Tensor x = random_tensor({2, kTime, kChannels}, 1);
      Pass masked, whole;
      masked.training = whole.training = true;
      masked.mask = mask;
      const Tensor with = norm.forward(x, masked), without = norm.forward(x, whole);
      const bool same = std::ranges::equal(with.values(), without.values());
      CHECK(same == (padding == NormPadding::count));
    }
  }
}

TEST_CASE("batch_step keeps a position's running statistics where no row is real", "[nn]") {
  ParameterStore store(1);
  const Norm norm(Scope(store) / "n", small({NormKind::batch_step, Placement::pre}));
  const std::vector<std::uint8_t> mask{1, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0};
  Pass pass;
  pass.training = true;
  pass.mask = mask;
  norm.forward(random_tensor({2, kTime, kChannels}, 1), pass);
  const Out mean = store.buffers()[0].tensor.values(), var = store.buffers()[1].tensor.values();
  for (std::size_t c = 0; c < kChannels; ++c) {
    CHECK(mean[2 * kChannels + c] != 0);
    CHECK(mean[3 * kChannels + c] != 0);
    CHECK(var[3 * kChannels + c] == Approx(0.9).epsilon(1e-6));  // one row: the biased variance, 0
    CHECK(mean[4 * kChannels + c] == 0);
    CHECK(var[5 * kChannels + c] == 1);
  }
}
