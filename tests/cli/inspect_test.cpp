// The commands inspect and check, and what they share with a run's metrics.
#include "catch.h"
#include "cli_runs.h"

using namespace normlab;

namespace {

Json document(const Finished& finished) { return parse_json(finished.out, "standard output"); }

Strings lines_of_kind(const std::string& metrics, const std::string& kind) {
  Strings lines;
  for (const std::string& line : lines_of(metrics))
    if (holds(line, text("\"kind\":\"", kind, "\""))) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("inspect sees what the run's layers line of step 0 tells", "[cli]") {
  const Workshop& shop = trained();
  const Finished finished = run_program({"inspect", shop.path("tiny.yaml"), "--json"});
  REQUIRE(finished.code == 0);
  const Json inspection = document(finished);
  const Json layers = parse_json(lines_of_kind(shop.metrics("run"), "layers").at(0), "layers");
  for (const Json& parameter : inspection.at("parameters").elements()) {
    CHECK(parameter.at("grad_norm").real() ==
          Approx(layers.at("grad_norm").at(parameter.at("name").string()).real()).epsilon(1e-9));
    CHECK(parameter.at("norm").real() == layers.at("norm").at(parameter.at("name").string()).real());
  }
  const Json& block = inspection.at("blocks").elements().at(0);
  CHECK(block.at("residual_rms") == layers.at("residual_rms").elements().at(0));
  CHECK(block.at("token_cosine") == layers.at("token_cosine").elements().at(0));
  CHECK(block.at("grad_norm").find("mlp.down") != nullptr);
  CHECK(block.at("norm_spread").is_number());
}

TEST_CASE("inspect of a checkpoint, with curvature; of a configuration, with depths, seeds and a picture", "[cli]") {
  const Workshop& shop = trained();
  const Finished trained_model = run_program({"inspect", shop.path("run"), "--curvature", "--json"});
  REQUIRE(trained_model.code == 0);
  const Json curvature = document(trained_model).at("curvature");
  CHECK(curvature.at("sharpness").at("value").is_number());
  CHECK(curvature.at("preconditioned").at("error").real() < 0.01);
  const Finished fresh = run_program(
      {"inspect", shop.path("tiny.yaml"), "--seeds", "2", "--depths", "1,2", "--svg", shop.path("picture.svg")});
  REQUIRE(fresh.code == 0);
  CHECK(holds(fresh.out, "exponent"));
  CHECK(holds(fresh.out, "x + f(layer(x))"));
  CHECK(read_file(shop.path("picture.svg")).starts_with("<svg"));
}

TEST_CASE("inspect tells how shards change the gradient of BatchNorm, and leave that of LayerNorm", "[cli]") {
  const Workshop& shop = trained();
  const auto difference = [&](const char* norm) {
    const Finished finished =
        run_program({"inspect", shop.path("tiny.yaml"), norm, "train.batch_size=16", "--shards", "4,16", "--json"});
    REQUIRE(finished.code == 0);
    return document(finished).at("shards").elements().at(1).at("relative_difference").real();
  };
  CHECK(difference("model.norm=layer") < 1e-5);  // rounding in float
  CHECK(difference("model.norm=batch") > 0.1);
}

TEST_CASE("what inspect refuses", "[cli]") {
  const Workshop& shop = trained();
  const auto refusal = [&](const Strings& words) {
    const Finished finished = run_program(joined({"inspect"}, words));
    CHECK(finished.code == 2);
    return finished.err;
  };
  CHECK(holds(refusal({shop.path("tiny.yaml"), "--depths", "6"}), "two depths"));
  CHECK(holds(refusal({shop.path("tiny.yaml"), "--depths", "6,x"}), "'6,x'"));
  CHECK(holds(refusal({shop.path("tiny.yaml"), "--shards", "0"}), "rising numbers of shards"));
  CHECK(holds(refusal({shop.path("tiny.yaml"), "--shards", "7"}), "7 does not divide train.batch_size"));
  CHECK(holds(refusal({shop.path("run"), "--seeds", "2"}), "fresh models"));
  CHECK(holds(refusal({shop.path("run"), "model.norm=rms"}), "model.norm cannot change from layer to rms"));
}

TEST_CASE("check ends with 0 where nothing leaks, with 1 where something does", "[cli]") {
  const Workshop& shop = trained();
  CHECK(run_program({"check", shop.path("tiny.yaml")}).code == 0);
  const Finished leak = run_program({"check", shop.path("tiny.yaml"), "model.norm=batch", "--json"});
  CHECK(leak.code == 1);
  const Json report = document(leak);
  bool found = false;
  for (const Json& item : report.at("checks").elements())
    if (item.at("name").string() == "causality, training") {
      found = true;
      CHECK(item.at("status").string() == "failed");
      CHECK(holds(item.at("detail").string(), "blocks.0.attn_norm"));
    }
  CHECK(found);
  CHECK(report.at("later_token").at("training").at("first").string() == "blocks.0.attn_norm");
  CHECK(run_program({"check", shop.path("run")}).code == 0);
}

TEST_CASE("a run measures curvature and gradient noise where it is asked to, and resumes with them", "[cli]") {
  const Workshop shop;
  const Strings settings{"log.curvature_every=2", "log.layers_every=2", "checkpoint.every=2",
                         "train.grad_accumulation=2", "optimizer.grad_clip=0.1"};
  REQUIRE(shop.train("whole", settings).code == 0);
  // The third step has written lines of step 2, which belong to the update that follows it.
  REQUIRE(shop.train("parts", joined(settings, {"--stop-at", "3"})).code == 0);
  std::filesystem::remove(shop.checkpoint("parts", "step-000003"));
  REQUIRE(run_program({"train", "--resume", shop.path("parts")}).code == 0);
  CHECK(shop.metrics("whole") == shop.metrics("parts"));
  const Strings curvature = lines_of_kind(shop.metrics("whole"), "curvature");
  REQUIRE(curvature.size() == 3);  // steps 0, 2 and 4
  CHECK(parse_json(curvature[0], "line").at("preconditioned").is_null());
  CHECK(parse_json(curvature[1], "line").at("preconditioned").is_object());
  const Json layers = parse_json(lines_of_kind(shop.metrics("whole"), "layers").at(1), "layers");
  CHECK(layers.at("clip_rate").real() == Approx(1));
  CHECK(layers.at("gradient_noise_scale").real() > 0);
  CHECK(layers.at("update_to_weight").elements().size() == 1);
  const Finished batch = shop.train("batch", joined(settings, {"model.norm=batch", "log.curvature_every=0",
                                                               "train.batch_size=16", "train.shards=4"}));
  REQUIRE(batch.code == 0);
  CHECK(holds(batch.err, "a step: 2 micro-batches of 16 rows, each in 4 shards of 4, each with batch statistics"));
  CHECK(holds(batch.err, "no gradient noise scale"));
  CHECK(
      parse_json(lines_of_kind(shop.metrics("batch"), "layers").at(1), "layers").at("gradient_noise_scale").is_null());
}

TEST_CASE("cli: check and inspect look at the weights that model.from names", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.train("run", {"model.norm=batch", "optimizer.lr=0.1", "schedule.warmup_steps=0"}).code == 0);
  const std::string config = shop.path("tiny.yaml"), from = "model.from=" + shop.path("run");
  const auto change = [](const Strings& words) {
    const Finished done = run_program(joined({"check", "--json"}, words));
    CAPTURE(done.err);
    return parse_json(done.out, "check").at("later_token").at("training").at("largest_change").real();
  };
  const double trained = change({shop.path("run")});
  CHECK(change({config, "model.norm=batch", from}) == trained);
  CHECK(change({config, "model.norm=batch"}) != trained);
  const auto loss = [](const Strings& words) {
    const Json document = parse_json(run_program(joined({"inspect", "--curvature", "--json"}, words)).out, "inspect");
    return document.at("curvature").at("loss").real();
  };
  CHECK(loss({config, "model.norm=batch", from}) == loss({shop.path("run")}));
}
