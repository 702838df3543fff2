// Verdicts on points made by hand, and values of a run by their path.
#include "normlab/claims/claims.h"

#include <cmath>

#include "catch.h"

using namespace normlab;

namespace {

Measured point(const std::string& placement, const std::string& layers, std::int64_t seed, double loss,
               const std::string& outcome = "trained") {
  Measured out;
  out.settings = {{"model.placement", placement}, {"model.n_layers", layers}, {"seed", number(seed)}};
  out.seed = seed;
  out.outcome = outcome;
  out.entropies = {{"unigram", 3.0}, {"bigram", 2.0}};
  out.values = {{"val_loss", loss}};
  return out;
}

Claim claim(ClaimForm form, const Conditions& where) {
  Claim out;
  out.claim = "a claim";
  out.form = form;
  out.where = where;
  return out;
}

const Conditions kPost{{"model.placement", {"post"}}}, kPre{{"model.placement", {"pre"}}};

}  // namespace

TEST_CASE("claims: a bound holds over every seed, fails, or is undecided", "[claims]") {
  Claim above = claim(ClaimForm::above, kPost);
  above.bound = "unigram - 0.1";
  const std::vector<Measured> all{point("post", "6", 1, 2.95), point("post", "6", 2, 3.1)};
  CHECK(judge(above, all).verdict == Verdict::holds);
  CHECK(judge(above, all).measured == "3.025 (2.95 to 3.1, 2 seeds)");
  CHECK(judge(above, all).expected == "above unigram - 0.1 (2.9)");
  const std::vector<Measured> one{point("post", "6", 1, 2.85), point("post", "6", 2, 3.1)};
  CHECK(judge(above, one).verdict == Verdict::undecided);
  Claim below = above;
  below.form = ClaimForm::below;
  CHECK(judge(below, all).verdict == Verdict::fails);
  // Two settings: one holds, the other fails.
  const std::vector<Measured> depths{point("post", "6", 1, 3.1), point("post", "12", 1, 2.0)};
  CHECK(judge(above, depths).verdict == Verdict::fails);
  CHECK(judge(above, depths).measured == "n_layers 6: 3.1; n_layers 12: 2");
}

TEST_CASE("claims: settings of other texts have bounds of their own", "[claims]") {
  Claim below = claim(ClaimForm::below, kPost);
  below.bound = "bigram + 0.5";
  std::vector<Measured> points{point("post", "6", 1, 2.4), point("post", "12", 1, 2.4)};
  CHECK(judge(below, points).measured == "n_layers 6: 2.4; n_layers 12: 2.4");
  CHECK(judge(below, points).expected == "below bigram + 0.5 (2.5)");
  points[1].entropies["bigram"] = 1.0;
  CHECK(judge(below, points).verdict == Verdict::fails);
  CHECK(judge(below, points).measured == "n_layers 6: 2.4, the bound 2.5; n_layers 12: 2.4, the bound 1.5");
  CHECK(judge(below, points).expected == "below bigram + 0.5");
}

TEST_CASE("claims: over the mean, a bound within two standard errors is undecided", "[claims]") {
  Claim below = claim(ClaimForm::below, kPre);
  below.bound = "2.0";
  below.over = Over::mean;
  // Mean 1.9, deviation 0.1, standard error 0.1 / sqrt(3) = 0.058: the bound is 1.7 of them away.
  std::vector<Measured> points{point("pre", "6", 1, 1.8), point("pre", "6", 2, 1.9), point("pre", "6", 3, 2.0)};
  CHECK(judge(below, points).verdict == Verdict::undecided);
  below.bound = "2.1";
  CHECK(judge(below, points).verdict == Verdict::holds);
  below.bound = "1.7";
  CHECK(judge(below, points).verdict == Verdict::fails);
}

TEST_CASE("claims: margins and equality compare points of the same seed", "[claims]") {
  Claim margin = claim(ClaimForm::margin, kPre);
  margin.than = kPost;
  margin.by = 0.1;
  const std::vector<Measured> points{point("pre", "6", 1, 1.8), point("post", "6", 1, 2.0), point("pre", "6", 2, 1.7),
                                     point("post", "6", 2, 1.75)};
  CHECK(judge(margin, points).verdict == Verdict::undecided);  // 0.2 and 0.05 lower
  margin.by = 0.04;
  CHECK(judge(margin, points).verdict == Verdict::holds);
  Claim times = claim(ClaimForm::margin, kPost);
  times.than = kPre;
  times.times = 1.2;  // 2.0 / 1.8 and 1.75 / 1.7
  CHECK(judge(times, points).verdict == Verdict::fails);
  Claim equal = claim(ClaimForm::equal, kPre);
  equal.than = kPost;
  equal.tolerance = 0.21;
  CHECK(judge(equal, points).verdict == Verdict::holds);
  equal.tolerance = 0;
  CHECK(judge(equal, points).verdict == Verdict::fails);
  // Means 1.75 and 1.875, deviations 0.0707 and 0.177, standard error of the difference 0.135.
  equal.standard_errors = 2;
  CHECK(judge(equal, points).verdict == Verdict::holds);
  equal.standard_errors = 0.5;
  CHECK(judge(equal, points).verdict == Verdict::fails);
}

TEST_CASE("claims: exponents and outcomes", "[claims]") {
  Claim exponent = claim(ClaimForm::exponent, kPre);
  exponent.of = "model.n_layers";
  exponent.within = {-0.51, -0.49};
  const std::vector<Measured> points{point("pre", "4", 1, 1.0), point("pre", "16", 1, 0.5),
                                     point("pre", "64", 1, 0.25)};
  CHECK(judge(exponent, points).verdict == Verdict::holds);
  exponent.within = {0.4, 0.6};
  CHECK(judge(exponent, points).verdict == Verdict::fails);

  Claim outcome = claim(ClaimForm::outcome, kPost);
  outcome.is = "stuck";
  const std::vector<Measured> ends{point("post", "6", 1, 3, "stuck"), point("post", "6", 2, 2, "trained")};
  CHECK(judge(outcome, ends).verdict == Verdict::undecided);
  CHECK(judge(outcome, ends).measured == "1 of 2 stuck, the others trained");
}

TEST_CASE("claims: what cannot be judged is said", "[claims]") {
  const std::vector<Measured> points{point("pre", "6", 1, 1.8)};
  CHECK_THROWS_WITH(judge(claim(ClaimForm::outcome, kPost), points), ContainsSubstring("no point of the sweep meets"));
  Claim unknown = claim(ClaimForm::below, kPre);
  unknown.value = "eval.lost";
  unknown.bound = "1";
  CHECK_THROWS_WITH(judge(unknown, points), ContainsSubstring("no point has a value 'eval.lost'"));
  Claim lonely = claim(ClaimForm::margin, kPre);
  lonely.than = kPost;
  CHECK_THROWS_WITH(judge(lonely, points), ContainsSubstring("the same seed"));
  CHECK_THROWS_WITH(bound_of("unigrams", {}), ContainsSubstring("no bound"));
  CHECK_THROWS_WITH(bound_of("unigram * 2", {}), ContainsSubstring("after unigram"));
  CHECK(bound_of("floor + 0.5", {{"floor", 0.2}}) == 0.7);
  CHECK_FALSE(bound_of("floor", {}).has_value());
}

TEST_CASE("claims: values by path", "[claims]") {
  const Json root = parse_json(R"({"a":[1,{"b":2}],"blocks.0.w":3,"parameters":[{"name":"x.y","norm":4}]})", "test");
  CHECK(field_of(root, "a.0") == 1);
  CHECK(field_of(root, "a.-1.b") == 2);
  CHECK(field_of(root, "blocks.0.w") == 3);
  CHECK(field_of(root, "parameters.x.y.norm") == 4);
  CHECK(field_of(root, "parameters.x.y.norm / a.-1.b") == 2);
  CHECK_FALSE(field_of(root, "a.2").has_value());
  CHECK_FALSE(field_of(root, "none").has_value());

  RunFiles run;
  run.config.model.n_layers = 3;
  run.record = parse_json(R"({"outcome":"trained","bigram":2.5,"unigram":3,"floor":null,"vocab_size":50})", "test");
  for (const auto& [step, loss] : {std::pair(0, 4.0), {100, 3.0}, {200, 2.0}})
    run.lines["eval"].push_back(Json::object({{"step", step}, {"kind", "eval"}, {"loss", loss}}));
  run.lines["layers"].push_back(
      parse_json(R"({"step":25,"grad_norm":{"blocks.2.mlp.down.weight":8,"blocks.0.mlp.down.weight":2}})", "test"));
  CHECK(field_of(run, "val_loss") == 2.0);
  CHECK(field_of(run, "eval.loss@100") == 3.0);
  CHECK(field_of(run, "eval.loss@100..") == 2.5);
  CHECK_FALSE(field_of(run, "eval.loss@10000..").has_value());
  CHECK(field_of(run, "steps_to bigram") == 150.0);  // half way from 3 to 2
  CHECK_FALSE(field_of(run, "steps_to bigram - 1").has_value());
  CHECK(field_of(run, "layers.grad_norm.blocks.-1.mlp.down.weight@25 / layers.grad_norm.blocks.0.mlp.down.weight@25") ==
        4.0);
  CHECK_FALSE(field_of(run, "eval.loss@150").has_value());
  CHECK(run.entropy("ln_vocab") == std::log(50.0));
  CHECK_FALSE(run.entropy("floor").has_value());
}
