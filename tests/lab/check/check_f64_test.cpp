// What normlab check finds in small models.
#include <algorithm>
#include <cmath>

#include "catch.h"
#include "lab/check/check_parts.h"
#include "normlab/base/rng.h"
#include "normlab/lab/check/check.h"

using namespace normlab;

namespace {

Batch random_batch(std::uint64_t seed, Index rows) {
  Batch batch;
  batch.rows = rows;
  batch.time = 8;
  Random random(seed, "check");
  for (Index i = 0; i < rows * 8; ++i) {
    batch.tokens.push_back(static_cast<std::int32_t>(random.below(11)));
    batch.targets.push_back(static_cast<std::int32_t>(random.below(11)));
  }
  return batch;
}

CheckInput input_of(NormKind norm, Placement placement = Placement::pre, Index rows = 4) {
  CheckInput input;
  input.model.config.n_layers = 2;
  input.model.config.n_heads = 2;
  input.model.config.d_model = 16;
  input.model.config.context_length = 8;
  input.model.config.norm = norm;
  input.model.config.placement = placement;
  input.model.config.init = Initialisation::xavier;
  input.model.config.tie_embeddings = false;
  input.model.config.resolve();
  input.model.vocab_size = 11;
  input.batch = random_batch(1, rows);
  input.other = random_batch(2, rows);
  return input;
}

CheckItem::Status status_of(const CheckReport& report, std::string_view name) {
  const auto found = std::ranges::find(report.items, name, &CheckItem::name);
  REQUIRE(found != report.items.end());
  return found->status;
}

using Status = CheckItem::Status;

}  // namespace

TEST_CASE("nothing is wrong with LayerNorm and RMSNorm before and after the residual", "[check]") {
  const NormKind norm = GENERATE(NormKind::layer, NormKind::rms);
  const Placement placement = GENERATE(Placement::pre, Placement::post);
  const CheckReport report = run_checks(input_of(norm, placement));
  for (const CheckItem& item : report.items) {
    INFO(item.name << ": " << item.detail);
    CHECK(item.status == Status::ok);
  }
  CHECK(!report.failed());
  // Ba et al. 2016, table 1, but for eps; RMSNorm does not recentre.
  REQUIRE(report.invariance.size() == 4);
  for (const bool training : {true, false}) {
    const auto moved = [&](std::size_t row) {
      return training ? report.invariance[row].training : report.invariance[row].evaluation;
    };
    CHECK(moved(0) < 1e-5);
    CHECK((norm == NormKind::layer ? moved(1) < 1e-12 : moved(1) > 0.1));
    CHECK(moved(2) == 0);
    CHECK(moved(3) == 0);
  }
}

TEST_CASE("BatchNorm leaks the future in training alone, from the first block's norm on", "[check]") {
  const CheckReport report = run_checks(input_of(NormKind::batch));
  CHECK(report.failed());
  CHECK(status_of(report, "gradients, training") == Status::ok);
  CHECK(status_of(report, "gradients, evaluation") == Status::ok);
  CHECK(status_of(report, "causality, training") == Status::failed);
  CHECK(report.later_token.training.place == "blocks.0.attn_norm");
  CHECK(report.later_token.training.op == "normalize");
  CHECK(report.later_token.training.largest_change > 1e-4);
  CHECK(status_of(report, "causality, evaluation") == Status::ok);
  CHECK(report.later_token.evaluation.largest_change == 0);
  CHECK(status_of(report, "batch independence, training") == Status::warning);
  CHECK(report.other_samples.training.place == "blocks.0.attn_norm");
  CHECK(status_of(report, "batch independence, evaluation") == Status::ok);
  // Behind each output bias a BatchNorm takes the channel's mean away.
  CHECK(status_of(report, "every parameter learns") == Status::warning);
  CHECK(report.invariance[2].training > 0.05);
  CHECK(report.invariance[3].training > 0.05);
  CHECK(report.invariance[2].evaluation == 0);
}

TEST_CASE("after the residual BatchNorm leaks from there on", "[check]") {
  CHECK(run_checks(input_of(NormKind::batch, Placement::post)).later_token.training.place == "blocks.0.attn_norm");
  CHECK(run_checks(input_of(NormKind::batch, Placement::post, 1)).later_token.training.place == "blocks.0.attn_norm");
}

TEST_CASE("the whole family: gradients are right, and what leaks is what looks at later positions", "[check]") {
  // The axes that each norm reduces over: time is the future, batch the company. Running averages are used in
  // evaluation, by power after its warm-up too.
  struct Expected {
    NormKind norm;
    bool later_training, later_evaluation, others_training, others_evaluation;
  };
  const auto expected = GENERATE(
      Expected{NormKind::scale, false, false, false, false}, Expected{NormKind::group, false, false, false, false},
      Expected{NormKind::dyt, false, false, false, false}, Expected{NormKind::instance, true, true, false, false},
      Expected{NormKind::layer_seq, true, true, false, false},
      Expected{NormKind::batch_step, false, false, true, false}, Expected{NormKind::power, false, false, false, false});
  INFO(config::to_string(expected.norm));
  const CheckReport report = run_checks(input_of(expected.norm));
  CHECK(static_cast<bool>(report.later_token.training) == expected.later_training);
  CHECK(static_cast<bool>(report.later_token.evaluation) == expected.later_evaluation);
  CHECK(static_cast<bool>(report.other_samples.training) == expected.others_training);
  CHECK(static_cast<bool>(report.other_samples.evaluation) == expected.others_evaluation);
  for (const CheckItem& item : report.items) {
    if (!item.name.starts_with("gradients")) continue;
    INFO(item.name << ": " << item.detail);
    CHECK(item.status == Status::ok);
  }
  if (expected.norm == NormKind::power) {
    CHECK(status_of(report, "gradients, power after its warm-up") == Status::ok);
    CHECK(status_of(report, "causality, power's warm-up") == Status::warning);
  }
}

TEST_CASE("gradients: every norm in every placement is right, and a ten thousandth too much is wrong",
          "[check][slow]") {
  const auto look = [](const CheckInput& input) {
    ModelAt model = input.model;
    model.config.resolve();
    INFO(config::to_string(model.config.norm) << ' ' << config::to_string(model.config.placement) << ' '
                                              << model.config.norm_gain << ' ' << model.config.n_layers);
    LossSurface surface(model, input.batch);
    LossSurface::Vector gradient;
    surface.loss_and_gradient(gradient);
    double largest = 0;
    for (const double value : gradient) largest = std::max(largest, std::fabs(value));
    for (const GradientError& each : gradient_errors(surface, gradient)) {
      INFO(each.tensor);
      CHECK(each.error <= 1e-5);
    }
    for (double& value : gradient) value *= 1.0001;
    std::size_t begin = 0, caught = 0;
    const std::vector<GradientError> wrong = gradient_errors(surface, gradient);
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      const Named& parameter = surface.model().store().parameters()[i];
      const std::size_t end = begin + static_cast<std::size_t>(parameter.tensor.shape().numel());
      double own = 0;
      for (; begin < end; ++begin) own = std::max(own, std::fabs(gradient[begin]));
      INFO(wrong[i].tensor << ": " << own << " of " << largest << ", error " << wrong[i].error);
      if (own > 1e-9 * largest) CHECK(wrong[i].error > 1e-5);
      caught += wrong[i].error > 1e-5;
    }
    CHECK(caught > wrong.size() / 2);
  };
  for (const NormKind norm :
       {NormKind::none, NormKind::layer, NormKind::rms, NormKind::scale, NormKind::group, NormKind::dyt,
        NormKind::instance, NormKind::layer_seq, NormKind::batch, NormKind::batch_step, NormKind::power})
    for (const Placement placement : {Placement::pre, Placement::post, Placement::sandwich, Placement::res_post,
                                      Placement::deepnorm, Placement::none}) {
      if ((norm == NormKind::none) != (placement == Placement::none)) continue;  // refused, most of them
      CheckInput input = input_of(norm, placement);
      input.model.config.norm_warmup_steps = 1000;  // power's backward is the loss's gradient
      look(input);
    }
  CheckInput small = input_of(NormKind::layer), shrinking = input_of(NormKind::dyt, Placement::post);
  small.model.config.norm_gain = 0.01;
  small.model.config.init = shrinking.model.config.init = Initialisation::gpt2;
  small.model.config.n_layers = shrinking.model.config.n_layers = 4;
  look(small);
  look(shrinking);
  CheckInput deep = input_of(NormKind::none, Placement::none);
  deep.model.config.n_layers = 8;
  look(deep);
}

TEST_CASE("gradients: a loss of many kinks or steep walls, and a zero that rounding blows up, are not called wrong",
          "[check]") {
  const auto look = [](CheckInput input, Mode mode) {
    input.model.config.resolve();
    INFO(config::to_string(input.model.config.norm) << ' ' << config::to_string(input.model.config.placement));
    const CheckItem item = check_gradients(input, mode);
    INFO(item.name << ": " << item.detail);
    CHECK(item.status == Status::ok);
  };
  for (const NormKind norm : {NormKind::layer, NormKind::instance, NormKind::dyt, NormKind::batch})
    for (const Placement placement : {Placement::pre, Placement::post, Placement::res_post, Placement::deepnorm}) {
      CheckInput kinks = input_of(norm, placement);
      kinks.model.config.activation = MlpActivation::relu;
      kinks.model.config.init = Initialisation::gpt2;
      look(kinks, Mode::training);
      if (norm == NormKind::batch) look(kinks, Mode::evaluation);  // on running averages that nothing has set
    }
  // Positions at which the samples are alike: their variance is next to nothing, sublayer after sublayer.
  CheckInput alike = input_of(NormKind::batch_step, Placement::sandwich);
  alike.model.config.n_layers = 6;
  for (Index row = 1; row < alike.batch.rows; ++row)
    std::copy_n(alike.batch.tokens.begin(), 2, alike.batch.tokens.begin() + row * alike.batch.time);
  look(alike, Mode::training);
}

TEST_CASE("a gradient that many layers made small is no rounding, and a loss that is not finite is no wrong gradient",
          "[check]") {
  CheckInput small = input_of(NormKind::dyt, Placement::post);
  small.model.config.norm_gain = 1e-8;
  CHECK(status_of(run_checks(small), "every parameter learns") == Status::ok);
  CheckInput huge = input_of(NormKind::layer);
  huge.model.config.norm_gain = 1e38;
  const CheckReport report = run_checks(huge);
  const auto item = std::ranges::find(report.items, "gradients, training", &CheckItem::name);
  INFO(item->detail);
  // Where the loss overflows is a matter of rounding.
  CHECK(item->status != Status::failed);
  if (item->status == Status::warning)
    CHECK_THAT(item->detail, ContainsSubstring("the loss is not finite near these weights"));
}

TEST_CASE("a parameter without gradient is named", "[check]") {
  CheckInput input = input_of(NormKind::layer);
  input.model.config.norm_gain = 0;  // nothing passes any norm
  const CheckReport report = run_checks(input);
  CHECK(status_of(report, "every parameter learns") == Status::failed);
  const auto item = std::ranges::find(report.items, "every parameter learns", &CheckItem::name);
  CHECK(item->detail.find("blocks.0.attn.qkv.weight") != std::string::npos);
}

TEST_CASE("where a statistic is of one or two values, check blames no gradient", "[check]") {
  // Two samples, or two channels, become 1 and -1 with a step between that is as wide as the root of eps.
  CheckInput two = input_of(NormKind::batch_step, Placement::pre, 2);
  two.model.config.norm_eps = 1e-12;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    two.batch = random_batch(seed, 2);
    const CheckReport report = run_checks(two);
    CHECK(status_of(report, "gradients, training") != Status::failed);  // whether it warns is a matter of rounding
    CHECK(status_of(report, "gradients, evaluation") == Status::ok);
  }
  CheckInput one = input_of(NormKind::layer);
  one.model.config.n_heads = one.model.config.d_model = 1;
  const CheckReport report = run_checks(one);
  const auto item = std::ranges::find(report.items, "every parameter learns", &CheckItem::name);
  CHECK_THAT(item->detail, ContainsSubstring("which is its own mean"));
}

TEST_CASE("the initial loss of a tied head whose logits follow the token is called odd", "[check]") {
  CheckInput input = input_of(NormKind::layer);
  CHECK(status_of(run_checks(input), "initial loss") == Status::ok);
  input.model.config.tie_embeddings = true;
  input.model.config.n_layers = 1;
  CHECK(status_of(run_checks(input), "initial loss") == Status::warning);
}

TEST_CASE("padding: outputs of real positions are what counts", "[check]") {
  CheckInput input = input_of(NormKind::batch);
  for (Batch* batch : {&input.batch, &input.other}) {
    batch->valid.assign(batch->tokens.size(), 1);
    for (Index row = 0; row < batch->rows; ++row)
      for (Index t = 5 + row % 2; t < 8; ++t) {
        const std::size_t i = static_cast<std::size_t>(row * 8 + t);
        batch->valid[i] = 0, batch->tokens[i] = 0, batch->targets[i] = kIgnore;
      }
  }
  const CheckReport report = run_checks(input);
  CHECK(status_of(report, "gradients, training") == Status::ok);
  CHECK(status_of(report, "causality, evaluation") == Status::ok);
  CHECK(status_of(report, "causality, training") == Status::failed);
}
