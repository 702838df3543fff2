// A value that is not finite, put into every named tensor in turn: what each op makes, each gradient on its way back,
// parameters, running averages, the optimizer's state. The post-mortem names the tensor, and nothing is updated.
#include <cmath>
#include <filesystem>
#include <limits>

#include "catch.h"
#include "edges_runs.h"
#include "norm_pairs.h"
#include "normlab/host/files.h"
#include "normlab/run/run.h"
#include "temporary.h"

using namespace normlab;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Site {
  bool forward;
  std::string op, place, shape;
  std::size_t size;
};

// Looks at every tensor of a pass, and makes the first value of the `target`-th NaN: in the step itself, and again when
// it is replayed.
class Saboteur {
 public:
  explicit Saboteur(std::size_t target, std::vector<Site>* sites = nullptr)
      : watch_([this, target, sites](const Seen& seen) {
          if (seen.forward && seen.op == "embedding") met_ = 0;  // a pass begins
          if (sites)
            sites->push_back(
                {seen.forward, std::string(seen.op), std::string(seen.place), text(seen.shape), seen.values.size()});
          if (met_++ == target) const_cast<float&>(seen.values[0]) = kNan;
        }) {}

 private:
  std::size_t met_ = 0;
  Watch watch_;
};

std::vector<Site> sites_of(const RunConfig& config) {
  Trial trial(config);
  std::vector<Site> sites;
  const Batch batch = trial.data.train_batch(1, 0, config.train.batch_size);
  const Saboteur saboteur(static_cast<std::size_t>(-1), &sites);
  Pass pass{.training = true, .dropout = Random(1, "dropout")};
  backward(trial.model.loss(batch, pass));
  return sites;
}

void check_every_tensor(const RunConfig& config) {
  INFO(config::to_string(config.model.norm) << ' ' << config::to_string(config.model.placement));
  const std::vector<Site> sites = sites_of(config);
  REQUIRE(sites.size() > 15);
  Trial trial(config);
  const std::vector<float> parameters = values_of(trial.model.store().parameters()),
                           buffers = values_of(trial.model.store().buffers());
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const Site& site = sites[i];
    INFO((site.forward ? "forward " : "backward ") << site.op << " in " << site.place << ' ' << site.shape);
    RunReport report;
    {
      const Saboteur saboteur(i);
      report = trial.run(0, 1);
    }
    REQUIRE(report.outcome == Outcome::nonfinite);
    CHECK(report.step == 0);
    CHECK_THAT(report.reason,
               ContainsSubstring("step 1: ") &&
                   ContainsSubstring(site.forward ? " in the forward: op " : " in the backward: gradient") &&
                   ContainsSubstring(text("op ", site.op, " in ", site.place.empty() ? "the loss" : site.place,
                                          ", tensor ", site.shape, ", 1 of ", site.size, " values")));
    REQUIRE((values_of(trial.model.store().parameters()) == parameters));
    REQUIRE((values_of(trial.model.store().buffers()) == buffers));
  }
}

RunConfig config_with(NormKind norm, Placement placement) {
  RunConfig config = smallest_config();
  config.model.norm = norm;
  config.model.placement = placement;
  return config;
}

}  // namespace

TEST_CASE("edges: NaN in any op's result or gradient is named, with every norm and in every place", "[train]") {
  for (const NormKind norm : kAllNorms)
    if (norm != NormKind::none) check_every_tensor(config_with(norm, Placement::pre));
  for (const Placement placement : kAllPlacements) check_every_tensor(config_with(NormKind::layer, placement));
  RunConfig config = config_with(NormKind::power, Placement::pre);
  config.model.norm_warmup_steps = 0;
  config.model.activation = MlpActivation::swiglu;
  config.model.position = Position::rope;
  config.model.tie_embeddings = false;
  config.model.bias = false;
  check_every_tensor(config);
}

TEST_CASE("edges: the gradient of a parameter is named as the parameter's", "[train]") {
  const RunConfig config = config_with(NormKind::layer, Placement::pre);
  Trial trial(config);
  for (const Named& parameter : trial.model.store().parameters()) {
    if (parameter.name == "pos_embed.weight") continue;  // comes with tok_embed's
    INFO(parameter.name);
    const Watch saboteur([&](const Seen& seen) {
      if (!seen.forward && seen.values.data() == parameter.tensor.grad().data())
        const_cast<float&>(seen.values[0]) = kNan;
    });
    CHECK_THAT(trial.run(0, 1).reason, ContainsSubstring(text("backward: gradient of ", parameter.name, " of op ")));
  }
}

TEST_CASE("edges: a parameter that is not finite is named, with the op that meets it first", "[train]") {
  for (const NormPair pair : legal_pairs()) {
    INFO(config::to_string(pair.norm) << ' ' << config::to_string(pair.placement));
    Trial trial(config_with(pair.norm, pair.placement));
    for (const Named& parameter : trial.model.store().parameters())
      for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
        INFO(parameter.name << ' ' << bad);
        // A token that the first batch has, or position 0.
        const Index row = parameter.name == "tok_embed.weight" ? trial.data.train_batch(1, 0, 2).tokens[0] : 0;
        float& value = parameter.tensor.values()[static_cast<std::size_t>(row * parameter.tensor.shape().last())];
        const float kept = std::exchange(value, bad);
        const RunReport report = trial.run(0, 1);
        value = kept;
        // tanh(inf) is 1, and an infinite alpha gives a tanh of 1, -1 or, at 0, NaN.
        if (pair.norm == NormKind::dyt && bad > 0 && report.outcome == Outcome::trained) continue;
        REQUIRE(report.outcome == Outcome::nonfinite);
        CHECK_THAT(report.reason,
                   ContainsSubstring(text("; when the step began, 1 of ", parameter.tensor.values().size(),
                                          " values of the parameter ", parameter.name, " were not finite")) &&
                       ContainsSubstring("the first value that is not finite appeared in the ") &&
                       ContainsSubstring("begin at training tokens ") &&
                       ContainsSubstring("; no update came before it"));
      }
  }
}

TEST_CASE("edges: a state of the optimizer that is not finite is found in the parameter that it moves", "[train]") {
  RunConfig config = config_with(NormKind::layer, Placement::pre);
  config.optimizer.name = GENERATE(OptimizerKind::adamw, OptimizerKind::sgd);
  config.train.steps = 10;
  Trial trial(config);
  CHECK(trial.run(0, 1).outcome == Outcome::interrupted);
  for (const Named& state : trial.optimizer.state())
    if (state.name.ends_with("mlp.up.weight")) state.tensor.values()[3] = kNan;
  const RunReport report = trial.run(1, 5);
  CHECK(report.outcome == Outcome::nonfinite);
  CHECK(report.step == 2);
  CHECK_THAT(report.reason, ContainsSubstring("step 3: ") &&
                                ContainsSubstring("1 of 64 values of the parameter blocks.0.mlp.up.weight") &&
                                ContainsSubstring("; the gradient norm of the step before was "));
}

// What training does not look at, evaluation does, and a checkpoint would keep.
TEST_CASE("edges: a running average or an unused word that is not finite is named before it is saved", "[train]") {
  struct Sabotage : Observer {
    const Gpt& model;
    std::string name;
    Sabotage(const Gpt& model, std::string name) : model(model), name(std::move(name)) {}
    void on_step_end(const StepReport& step, const EvalReport*, RunControl&) override {
      if (step.step != 3) return;
      for (const std::vector<Named>* tensors : {&model.store().parameters(), &model.store().buffers()})
        for (const Named& named : *tensors)
          if (named.name == name) named.tensor.values().back() = kNan;
    }
  };
  for (const auto& [norm, name] : {std::pair{NormKind::batch, "blocks.0.attn_norm.running_mean"},
                                   {NormKind::batch_step, "blocks.0.mlp_norm.running_var"},
                                   {NormKind::power, "final_norm.running_square"},
                                   {NormKind::layer, "tok_embed.weight"}}) {
    INFO(name);
    const TemporaryDirectory directory;
    RunConfig config = config_with(norm, Placement::pre);
    config.model.norm_warmup_steps = 100;  // until then PowerNorm does not look at its average in training
    std::string words;
    for (int i = 0; i < 50; ++i) words += "abcd";
    config.data.source = directory.path("train.txt");
    config.data.validation = directory.path("validation.txt");
    write_file(config.data.source, words);
    write_file(*config.data.validation, words + "z");  // the last of the alphabet, which training never meets
    config.model.tie_embeddings = false;
    config.train.steps = 20;
    config.log.sample_tokens = 0;
    config.checkpoint.every = 2;
    config.run.dir = directory.path("run");
    config.resolve();
    RunOptions options;
    options.watch = [name = name](const auto& watched) -> std::unique_ptr<Observer> {
      return std::make_unique<Sabotage>(watched.model, name);
    };
    Terminal quiet(-1, false);
    const RunReport report = start_run(config, "test", options, quiet).report;
    CHECK(report.outcome == Outcome::nonfinite);
    CHECK(report.step == 4);
    CHECK_THAT(report.reason, ContainsSubstring(text("update 4 left parameters that are not finite, first in ", name)));
    CHECK(std::filesystem::exists(directory.path("run/checkpoints/step-000002.safetensors")));
    CHECK_FALSE(std::filesystem::exists(directory.path("run/checkpoints/step-000004.safetensors")));
  }
}

TEST_CASE("edges: a running average that a step uses is named with the op that meets it", "[train]") {
  RunConfig config = config_with(NormKind::power, Placement::pre);
  config.model.norm_warmup_steps = 0;
  Trial trial(config);
  for (const Named& buffer : trial.model.store().buffers())
    if (buffer.name == "blocks.0.mlp_norm.running_square") buffer.tensor.values()[1] = kNan;
  const RunReport report = trial.run(0, 1);
  CHECK(report.outcome == Outcome::nonfinite);
  CHECK_THAT(report.reason, ContainsSubstring("forward: op power in blocks.0.mlp_norm, tensor [2, 4, 4], 8 of 32") &&
                                ContainsSubstring("when the step began, 1 of 4 values of the running average "
                                                  "blocks.0.mlp_norm.running_square were not finite"));
}
