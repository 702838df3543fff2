// The figures of normlab inspect: by hand on small models, and the growth of gradients with depth.
#include "normlab/lab/inspect/inspect.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "normlab/report/report_page.h"

using namespace normlab;

namespace {

ModelConfig small_config() {
  ModelConfig config;
  config.n_layers = 1;
  config.n_heads = 2;
  config.d_model = 4;
  config.context_length = 4;
  config.resolve();
  return config;
}

Batch small_batch() {
  Batch batch;
  batch.rows = 2;
  batch.time = 4;
  batch.tokens = {0, 1, 0, 1, 1, 0, 1, 0};
  batch.targets = {1, 0, 1, 0, 0, 1, 0, 2};
  return batch;
}

Out values_of(const Gpt& model, const std::string& name) {
  return std::ranges::find(model.store().parameters(), name, &Named::name)->tensor.values();
}

const NormFigures& norm_named(const Inspection& inspection, const std::string& name) {
  return *std::ranges::find(inspection.norms, name, &NormFigures::name);
}

// The base recipe of the claims, on built-in text.
ModelConfig base_recipe(Placement placement) {
  ModelConfig config;
  config.n_layers = 6;
  config.d_model = 64;
  config.context_length = 32;
  config.placement = placement;
  config.init = Initialisation::xavier;
  config.tie_embeddings = false;
  config.resolve();
  return config;
}

}  // namespace

TEST_CASE("attention to equal keys is uniform", "[inspect]") {
  const Gpt model(small_config(), 3, 1);
  std::ranges::fill(values_of(model, "blocks.0.attn.qkv.weight"), Real(0));
  const Batch batch = small_batch();
  const InspectedBlock block = inspect_model(model, batch).blocks.at(0);
  CHECK(block.entropy_share == Approx(1).epsilon(1e-6));
  // Queries 1, 2 and 3 have 2, 3 and 4 positions to look at.
  CHECK(block.attention_entropy == Approx((std::log(2.0) + std::log(3.0) + std::log(4.0)) / 3).epsilon(1e-6));
}

TEST_CASE("attention that prefers one key by ln 3 has the entropy of 1/4 and 3/4", "[inspect]") {
  ModelConfig config = small_config();
  config.n_heads = 1;
  config.position = Position::rope;
  config.rope_base = 1e30;  // the second pair of channels does not turn
  config.placement = Placement::none;
  const Gpt model(config, 3, 1);
  // Queries and keys are the fourth channel alone: 2 sqrt(ln 3) apart for token 1, 0 for token 0; 2 is sqrt(D).
  std::ranges::fill(values_of(model, "tok_embed.weight"), Real(0));
  values_of(model, "tok_embed.weight")[1 * 4 + 3] = 1;
  const Out qkv = values_of(model, "blocks.0.attn.qkv.weight");
  std::ranges::fill(qkv, Real(0));
  qkv[3 * 4 + 3] = qkv[7 * 4 + 3] = static_cast<Real>(std::sqrt(2 * std::log(3.0)));
  Batch batch;
  batch.rows = 1;
  batch.time = 2;
  batch.tokens = {0, 1};
  batch.targets = {1, 0};
  const double expected = -(0.25 * std::log(0.25) + 0.75 * std::log(0.75));
  CHECK(inspect_model(model, batch).blocks.at(0).attention_entropy == Approx(expected).epsilon(1e-5));
}

TEST_CASE("the spread of a norm's statistics, over tokens or over channels", "[inspect]") {
  ModelConfig config = small_config();
  const Batch batch = small_batch();
  const auto figures = [&](NormKind kind) {
    config.norm = kind;
    const Gpt model(config, 3, 1);
    std::ranges::fill(values_of(model, "pos_embed.weight"), Real(0));
    const Out embedding = values_of(model, "tok_embed.weight");
    std::ranges::copy(std::initializer_list<Real>{4, -2, 4, -2, 2, 0, 2, 0}, embedding.begin());
    return norm_named(inspect_model(model, batch), "blocks.0.attn_norm");
  };
  // Tokens 0 and 1, equally often: deviations 3 and 1 about the mean 1.
  CHECK(figures(NormKind::layer).deviation == Approx(2).epsilon(1e-6));
  CHECK(figures(NormKind::layer).spread == Approx(0.5).epsilon(1e-6));
  // Root mean squares sqrt(10) and sqrt(2).
  CHECK(figures(NormKind::rms).deviation == Approx((std::sqrt(10.0) + std::sqrt(2.0)) / 2).epsilon(1e-6));
  // Every channel has the deviation 1 over the tokens.
  CHECK(figures(NormKind::batch).deviation == Approx(1).epsilon(1e-6));
  CHECK(std::fabs(figures(NormKind::batch).spread) < 1e-6);
}

TEST_CASE("inspection leaves running averages alone, and a mean is a mean", "[inspect]") {
  ModelConfig config = small_config();
  config.norm = NormKind::batch;
  const Gpt model(config, 3, 1), other(config, 3, 2);
  const Batch batch = small_batch();
  const Inspection a = inspect_model(model, batch), b = inspect_model(other, batch);
  for (const Named& buffer : model.store().buffers())
    for (const Real value : buffer.tensor.values()) CHECK(value == (buffer.name.ends_with("running_var") ? 1 : 0));
  const Inspection mean = mean_of({a, b});
  CHECK(mean.loss == Approx((a.loss + b.loss) / 2));
  CHECK(mean.grad_norm("blocks.0.mlp.down.weight") ==
        Approx((a.grad_norm("blocks.0.mlp.down.weight") + b.grad_norm("blocks.0.mlp.down.weight")) / 2));
  CHECK(mean.blocks[0].residual_rms == Approx((a.blocks[0].residual_rms + b.blocks[0].residual_rms) / 2));
}

TEST_CASE("costs by hand", "[inspect]") {
  RunConfig config;
  config.model = small_config();
  config.model.norm = NormKind::batch;
  config.train.batch_size = 5;
  config.train.grad_accumulation = 2;
  const Costs costs = costs_of(config, DataFacts{}, Gpt(config.model, 3, 1));
  // tok_embed 3 x 4, pos_embed 4 x 4, qkv 12 x 4, out 4 x 4, up 16 x 4, down 4 x 16 = 220; biases 12 + 4 + 16 + 4 = 36;
  // three norms of 8
  CHECK(costs.parameters == 220 + 36 + 24);
  CHECK(costs.decayed == 220);
  CHECK(costs.parameter_bytes == 4 * 280);
  CHECK(costs.optimizer_bytes == 8 * 280);
  // All matrices but the positions, the tied one as the head: 6 x 204; attention 12 x 1 x 4 x 4
  CHECK(costs.flops_per_token == 6 * 204 + 192);
  CHECK(costs.flops_per_step == 2 * 5 * 4 * costs.flops_per_token);
  // Three norms, two sums forward, two backward over 4 channels, and a count; two micro-batches
  CHECK(costs.synced_numbers == 2 * 3 * 17);
  config.model.norm = NormKind::layer;
  CHECK(costs_of(config, DataFacts{}, Gpt(config.model, 3, 1)).synced_numbers == 0);
}

// Xiong et al. 2020, theorem 1, with bounds that an independent implementation gave on another text.
TEST_CASE("the last layer's gradient falls with depth as 1 / sqrt(L) for Pre-LN, and does not for Post-LN",
          "[inspect][slow]") {
  const Dataset data = Dataset::load({}, 32, 1337);
  const Batch batch = data.train_batch(1, 0, 16);
  const auto fit = [&](Placement placement, double embed_std, const std::vector<Index>& depths) {
    ModelConfig config = base_recipe(placement);
    config.embed_std = embed_std;
    return fit_depths(config, data.tokenizer().vocab_size(), 1, 2, depths, batch);
  };
  const DepthFit pre = fit(Placement::pre, 0.02, {6, 12, 24}), post = fit(Placement::post, 0.02, {6, 12, 24});
  CHECK((pre.last > -0.65 && pre.last < -0.33));
  CHECK((post.last > -0.2 && post.last < 0.3));  // two seeds scatter more than five
  CHECK(pre.expected_last == -0.5);
  CHECK(post.expected_last == 0);
  CHECK((pre.points[1].first_over_last > 2.5 && pre.points[1].first_over_last < 6));
  const DepthFit pre_wide = fit(Placement::pre, 1, {6, 12}), post_wide = fit(Placement::post, 1, {6, 12});
  CHECK(post_wide.points[1].last / pre_wide.points[1].last > 2.5);
  CHECK((pre_wide.points[1].first_over_last > 1.3 && pre_wide.points[1].first_over_last < 3));
}

TEST_CASE("theory's shape: the stream's growth from here to the end for Pre-LN, flat for Post-LN", "[inspect]") {
  const std::vector<double> stream{2, 3};
  CHECK(expected_shape(base_recipe(Placement::pre), stream) == std::vector<double>{1.5, 1});
  CHECK(expected_shape(base_recipe(Placement::post), stream) == std::vector<double>{1, 1});
}

TEST_CASE("theory's shape is the same in a run's report and in inspect, without a norm too", "[inspect]") {
  struct Expected {
    NormKind norm;
    Placement placement;
    double first;  // of two blocks, the last of which has a gradient of 10
  };
  const auto expected =
      GENERATE(Expected{NormKind::layer, Placement::pre, 15}, Expected{NormKind::layer, Placement::res_post, 15},
               Expected{NormKind::layer, Placement::post, 10}, Expected{NormKind::layer, Placement::deepnorm, 10},
               Expected{NormKind::layer, Placement::none, 10}, Expected{NormKind::none, Placement::pre, 10},
               Expected{NormKind::none, Placement::none, 10});
  INFO(config::to_string(expected.norm) << ' ' << config::to_string(expected.placement));
  RunFiles run;
  run.config.model = base_recipe(Placement::pre);
  run.config.model.norm = expected.norm;
  run.config.model.placement = expected.placement;
  run.config.model.n_layers = 2;
  CHECK(10 * expected_shape(run.config.model, {2, 3})[0] == expected.first);
  run.lines["layers"].push_back(
      parse_json(R"({"step": 0, "residual_rms": [2, 3], "grad_norm": {"blocks.0.mlp.down.weight": 7,
                     "blocks.1.mlp.down.weight": 10}})",
                 "metrics.jsonl"));
  const NamedRun named{&run, ""};
  const std::vector<svg::Picture> pictures = gradients_at_start({&named, 1});
  REQUIRE(pictures.size() == 1);
  const auto shows = [&](double value) {
    return pictures[0].body.find(text("theory, from the last block: ", number(value), '<')) != std::string::npos;
  };
  CHECK(shows(10));
  CHECK(shows(15) == (expected.first == 15));
}
