// Training at the edge: the smallest sizes, the deepest stack, no targets, and the least and greatest learning rates.
#include <cmath>

#include "catch.h"
#include "edges_runs.h"
#include "norm_pairs.h"
#include "normlab/host/files.h"
#include "temporary.h"

using namespace normlab;

namespace {

// What the configuration is refused with; empty after three finite steps and an evaluation.
std::string trouble_with(RunConfig config) {
  try {
    Trial trial(std::move(config));
    Losses losses;
    const RunReport report = trial.run(0, trial.config.train.steps, {&losses});
    if (report.outcome != Outcome::trained) return report.reason;
    if (find_nonfinite(trial.model.store().parameters()) || find_nonfinite(trial.model.store().buffers()))
      return "trained, and left something that is not finite";
    return std::isfinite(report.last_eval->loss) ? "" : "trained, and evaluates to no finite loss";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

// Over every norm in every place; `refused` tells the beginning of the message where one is right.
void check_all_pairs(const RunConfig& base, const std::function<std::string(NormPair)>& refused) {
  for (const NormPair pair : legal_pairs()) {
    INFO(config::to_string(pair.norm) << ' ' << config::to_string(pair.placement));
    RunConfig config = base;
    config.model.norm = pair.norm;
    config.model.placement = pair.placement;
    const std::string expected = refused(pair), got = trouble_with(config);
    if (expected.empty())
      CHECK(got == "");
    else
      CHECK_THAT(got, ContainsSubstring(expected));
  }
}

std::string nothing_refused(NormPair) { return {}; }

std::string text_of_characters(char32_t count) {
  std::string out;
  for (char32_t c = 0x80, left = count; left > 0; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;  // surrogates are no characters
    --left;
    if (c >= 0x10000) out += static_cast<char>(0xF0 | c >> 18), out += static_cast<char>(0x80 | (c >> 12 & 63));
    if (c >= 0x800 && c < 0x10000) out += static_cast<char>(0xE0 | c >> 12);
    if (c < 0x800) out += static_cast<char>(0xC0 | c >> 6);
    if (c >= 0x800) out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  }
  return out;
}

}  // namespace

TEST_CASE("edges: one sample, a context of 1 and one layer train, or the norm that has nothing to measure is refused",
          "[train]") {
  RunConfig config = smallest_config();
  config.train.batch_size = 1;
  config.model.context_length = 1;
  check_all_pairs(config, [](NormPair pair) -> std::string {
    if (pair.norm == NormKind::batch) return "train.batch_size: 1 with model.context_length 1 leaves model.norm batch";
    if (pair.norm == NormKind::batch_step) return "train.batch_size: 1 leaves model.norm batch_step one row";
    return {};
  });
  config.model.context_length = 2;  // the least with which every norm but one has something to measure
  check_all_pairs(config, [](NormPair pair) -> std::string {
    return pair.norm == NormKind::batch_step ? "train.batch_size: 1 leaves model.norm batch_step one row" : "";
  });
}

TEST_CASE("edges: d_model 1 trains with every norm in every place, or says which key does not fit", "[train]") {
  RunConfig config = smallest_config();
  config.model.d_model = 1;
  config.model.norm_groups = 1;
  check_all_pairs(config, nothing_refused);
  config.model.norm = NormKind::group;
  config.model.norm_groups = 4;
  CHECK_THAT(trouble_with(config), ContainsSubstring("model.norm_groups: 4 does not divide model.d_model, 1"));
  config.model.norm = NormKind::layer;
  config.model.activation = MlpActivation::swiglu;
  config.model.tie_embeddings = false;
  config.model.d_ff = 1;
  CHECK(trouble_with(config) == "");
  for (const Position position : {Position::rope, Position::sinusoidal}) {
    config.model.position = position;
    CHECK_THAT(trouble_with(config), ContainsSubstring("model.position: ") && ContainsSubstring("even") &&
                                         ContainsSubstring("take model.position=learned"));
  }
}

TEST_CASE("edges: 200 layers train with every norm in every place", "[train][slow]") {
  RunConfig config = smallest_config();
  config.model.norm_warmup_steps = 100;  // the gradient of PowerNorm's later rule grows without bound in such a depth
  config.model.n_layers = 200;
  config.model.d_model = 2;
  config.model.d_ff = 2;
  config.model.norm_groups = 1;
  config.train.steps = 2;
  check_all_pairs(config, [](NormPair pair) -> std::string {
    // Running averages of two steps do not yet undo the (2L)^(1/4) = 4.5 of each of 400 sublayers.
    const bool averages = pair.norm == NormKind::batch || pair.norm == NormKind::batch_step;
    return averages && pair.placement == Placement::deepnorm ? "trained, and evaluates to no finite loss" : "";
  });
}

TEST_CASE("edges: a vocabulary of 1 has nothing to learn, and one of 2 and of 65,536 begins at ln V", "[train]") {
  const TemporaryDirectory directory;
  RunConfig config = smallest_config();
  config.model.placement = GENERATE(Placement::pre, Placement::post);
  config.data.source = directory.path("text.txt");
  const auto losses_on = [&](const std::string& text, Index vocabulary) {
    write_file(config.data.source, text);
    Trial trial(config);
    REQUIRE(trial.model.vocab_size() == vocabulary);
    Losses losses;
    CHECK(trial.run(0, 3, {&losses}).outcome == Outcome::trained);
    return losses.train;
  };
  CHECK(losses_on(std::string(200, 'a'), 1) == std::vector<double>{0, 0, 0});
  std::string two;
  for (int i = 0; i < 100; ++i) two += "ab";
  // Weights of N(0, 0.02^2) give logits of about 0.04 at most: the loss is ln V but for that.
  for (const auto& [text, vocabulary] : {std::pair{two, 2}, std::pair{text_of_characters(65536), 65536}})
    CHECK(std::fabs(losses_on(text, vocabulary)[0] - std::log(vocabulary)) < 0.1);
}

TEST_CASE("edges: micro-batches without a target add nothing, with every norm in every place", "[train]") {
  const std::vector<std::int32_t> tokens{3, 0, 2, 2, 4, 1, 1, 3}, none(8, kIgnore);
  const Batch real{2, 4, tokens, {0, 2, 2, 4, 1, 1, 3, 0}, {}, {}};
  const Batch padding{2, 4, tokens, none, std::vector<std::uint8_t>(8, 0), {}};
  for (const NormPair pair : legal_pairs()) {
    INFO(config::to_string(pair.norm) << ' ' << config::to_string(pair.placement));
    RunConfig config = smallest_config();
    config.model.norm = pair.norm;
    config.model.placement = pair.placement;
    config.resolve();
    const auto gradients = [&](const std::vector<bool>& parts_with_targets) {
      const Gpt model(config.model, 5, 1);
      model.store().clear_gradients();
      std::vector<float> all;
      for (const bool with_targets : parts_with_targets) {
        Pass pass{.training = true};
        const Tensor loss = model.loss(with_targets ? real : padding, pass, 8);
        if (!with_targets) CHECK(loss.item() == 0);
        backward(loss);
      }
      for (const Named& parameter : model.store().parameters())
        all.insert(all.end(), parameter.tensor.grad().begin(), parameter.tensor.grad().end());
      CHECK(find_nonfinite(model.store().buffers()) == nullptr);
      return all;
    };
    for (const float each : gradients({false, false})) REQUIRE(each == 0);
    // PowerNorm divides by a mean over the passes, of which an empty one is one too.
    if (pair.norm != NormKind::power) CHECK((gradients({true, false}) == gradients({true})));
    if (pair.norm != NormKind::power) CHECK((gradients({false, true}) == gradients({true})));
  }
}

TEST_CASE("edges: a learning rate of 0 leaves every byte, and 1e-30 at most that much", "[train]") {
  for (const OptimizerKind name : {OptimizerKind::adamw, OptimizerKind::sgd})
    for (const double lr : {0.0, 1e-30}) {
      INFO(config::to_string(name) << ' ' << lr);
      RunConfig config = smallest_config();
      config.optimizer.name = name;
      config.optimizer.lr = lr;
      Trial trial(config);
      const std::vector<float> before = values_of(trial.model.store().parameters());
      CHECK(trial.run(0, 3).outcome == Outcome::trained);
      const std::vector<float> after = values_of(trial.model.store().parameters());
      if (lr == 0) CHECK((after == before));
      // Three steps: Adam's are of about lr each, those of SGD lr times a clipped gradient with momentum.
      for (std::size_t i = 0; i < before.size(); ++i) REQUIRE(std::fabs(after[i] - before[i]) <= 6e-30f);
    }
}

TEST_CASE("edges: a learning rate of 1e30 ends as nonfinite or diverged, with the reason, for every norm and place",
          "[train]") {
  for (const NormPair pair : legal_pairs()) {
    INFO(config::to_string(pair.norm) << ' ' << config::to_string(pair.placement));
    RunConfig config = smallest_config();
    config.model.norm = pair.norm;
    config.model.placement = pair.placement;
    config.optimizer.lr = 1e30;
    config.train.steps = 60;
    config.resolve();
    Trial trial(config);
    const std::vector<double> bound{2 * std::log(static_cast<double>(trial.model.vocab_size())) + 2};
    Losses losses;
    const RunReport report = trial.run(0, 60, {&losses});
    if (report.outcome == Outcome::nonfinite) {
      CHECK_THAT(report.reason, ContainsSubstring("the first value that is not finite appeared in the ") &&
                                    ContainsSubstring("the gradient norm of the step before was "));
    } else {  // diverged, which an observer of a run would have said
      CHECK(std::ranges::count_if(losses.train, [&](double loss) { return loss > bound[0]; }) >= 20);
    }
  }
}
