// Models that begin from another (model.from): what is taken over, what the norm `fixed` gets, what is refused.
#include "normlab/run/starting_model.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "cli_runs.h"
#include "normlab/config/loader.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/run.h"
#include "normlab/train/evaluate.h"

using namespace normlab;

namespace {

Checkpoint last_of(const Workshop& shop, const std::string& run) { return Checkpoint(checkpoint_path(shop.path(run))); }

// What a run of `shop` would start with.
Gpt start(const Workshop& shop, const std::string& from, const Strings& more = {}) {
  RunConfig config = load_run_config(shop.path("tiny.yaml"), joined({"model.from=" + shop.path(from)}, more)).config;
  std::optional<StartingPoint> point = read_starting_point(config);
  const Dataset data = Dataset::load(config.data, config.model.context_length, static_cast<std::uint64_t>(config.seed),
                                     point ? point->tokenizer : std::nullopt);
  return starting_model(config, data, std::move(point));
}

Tensor tensor_of(const std::vector<Named>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  REQUIRE(found != all.end());
  return found->tensor;
}

void check_same_parameters(const Gpt& left, const Gpt& right) {
  REQUIRE(left.store().parameters().size() == right.store().parameters().size());
  for (const Named& named : left.store().parameters()) {
    INFO(named.name);
    CHECK(std::ranges::equal(named.tensor.values(), tensor_of(right.store().parameters(), named.name).values()));
  }
}

const Strings kLlama{"model.norm=rms", "model.position=rope", "model.activation=swiglu", "model.bias=false",
                     "model.tie_embeddings=false"};

}  // namespace

TEST_CASE("a model that begins from a run has its weights, whatever its own seed", "[run]") {
  const Workshop& shop = trained();
  check_same_parameters(start(shop, "run", {"seed=5"}), last_of(shop, "run").model());
  CHECK_THROWS_WITH(start(shop, "run", {"model.n_layers=2"}),
                    ContainsSubstring("model.n_layers") && ContainsSubstring("only norms and dropout may differ"));
}

TEST_CASE("another norm takes over what both have", "[run]") {
  const Workshop& shop = trained();
  const Gpt from = last_of(shop, "run").model(), to = start(shop, "run", {"model.norm=dyt"});
  CHECK(to.config().norm == NormKind::dyt);
  const std::string qkv = "blocks.0.attn.qkv.weight", alpha = "blocks.0.attn_norm.alpha";
  CHECK(std::ranges::equal(tensor_of(to.store().parameters(), qkv).values(),
                           tensor_of(from.store().parameters(), qkv).values()));
  CHECK(tensor_of(to.store().parameters(), alpha).values()[0] == Real(0.5));  // as fresh: Zhu et al. 2025
}

TEST_CASE("the norm fixed divides by the mean deviation of what entered the norm, over 8 training batches", "[run]") {
  const Workshop& shop = trained();
  const Gpt model = start(shop, "run", {"model.norm=fixed"});
  // The first norm sees the sum of the two embeddings.
  const RunConfig config = load_run_config(shop.path("tiny.yaml"), Strings{"model.from=" + shop.path("run")}).config;
  const Dataset data = Dataset::load(config.data, config.model.context_length, static_cast<std::uint64_t>(config.seed));
  const Gpt from = last_of(shop, "run").model();
  const auto tokens = tensor_of(from.store().parameters(), "tok_embed.weight").values();
  const auto positions = tensor_of(from.store().parameters(), "pos_embed.weight").values();
  constexpr std::size_t kWidth = 16, kTime = 16;
  double sum = 0, count = 0;
  for (std::int64_t step = 1; step <= 8; ++step) {
    const Batch batch = data.train_batch(step, 0, config.train.batch_size);
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      double mean = 0, squares = 0;
      for (std::size_t c = 0; c < kWidth; ++c) {
        const double x = double(tokens[static_cast<std::size_t>(batch.tokens[i]) * kWidth + c]) +
                         double(positions[i % kTime * kWidth + c]);
        mean += x / kWidth;
        squares += x * x / kWidth;
      }
      sum += std::sqrt(squares - mean * mean);
      count += 1;
    }
  }
  // 2e-6: the sum of the embeddings is rounded to float, 6e-8 of its size each.
  const Tensor deviation = tensor_of(model.store().buffers(), "blocks.0.attn_norm.deviation");
  CHECK(std::fabs(double(deviation.values()[0]) / (sum / count) - 1) < 2e-6);
}

TEST_CASE("a Hugging Face folder gives back the weights that were exported to it", "[run]") {
  const Workshop shop;
  REQUIRE(shop.train("gpt").code == 0);
  REQUIRE(shop.train("llama", kLlama).code == 0);
  for (const std::string name : {"gpt", "llama"}) {
    INFO(name);
    REQUIRE(run_program({"export", shop.path(name), "--to", "hf", shop.path(name + "-hf")}).code == 0);
    check_same_parameters(start(shop, name + "-hf", name == "llama" ? kLlama : Strings{}), last_of(shop, name).model());
  }
  CHECK_THROWS_WITH(start(shop, "llama-hf"), ContainsSubstring("only norms and dropout may differ"));
  CHECK(shop.train("on", {"model.from=" + shop.path("gpt-hf")}).code == 0);
}

TEST_CASE("a Hugging Face folder whose tied head is another tensor is refused by its name", "[run]") {
  const Workshop shop;
  REQUIRE(shop.train("run").code == 0);
  REQUIRE(run_program({"export", shop.path("run"), "--to", "hf", shop.path("hf")}).code == 0);
  const std::string weights = shop.path("hf/model.safetensors");
  const Safetensors file = Safetensors::read(weights);
  std::vector<StoredTensor> more = file.tensors();
  StoredTensor head = file.at("transformer.wte.weight");
  std::vector<float> values = head.values<float>();
  head.name = "lm_head.weight";
  more.push_back(head);
  write_safetensors(weights, {}, more);
  CHECK(start(shop, "hf").vocab_size() > 0);
  values.back() += 1;
  const auto refuses = [&](const StoredTensor& other) {
    more.back() = other;
    write_safetensors(weights, {}, more);
    CHECK_THROWS_WITH(start(shop, "hf"), ContainsSubstring("lm_head.weight differs from transformer.wte.weight") &&
                                             ContainsSubstring("set tie_word_embeddings to false"));
  };
  refuses(stored("lm_head.weight", head.shape, std::span<const float>(values)));
  refuses(stored("lm_head.weight", {16}, std::span<const float>(values).first(16)));
}

TEST_CASE("a Hugging Face folder that no model here expresses, or that lacks a tensor, is refused", "[run]") {
  const Workshop shop;
  REQUIRE(shop.train("run").code == 0);
  REQUIRE(run_program({"export", shop.path("run"), "--to", "hf", shop.path("hf")}).code == 0);
  const std::string path = shop.path("hf/config.json"), config = read_file(path);
  const auto with = [&](const std::string& key, Json value) {
    Json changed = parse_json(config, path);
    write_file(path, changed.set(key, std::move(value)).indented());
  };
  with("model_type", "bert");
  CHECK_THROWS_WITH(start(shop, "hf"), ContainsSubstring("model_type is \"bert\"; models here have gpt2 or llama"));
  with("activation_function", "tanh");
  CHECK_THROWS_WITH(start(shop, "hf"), ContainsSubstring("activation_function is \"tanh\""));
  with("n_layer", 2);
  CHECK_THROWS_WITH(start(shop, "hf"), ContainsSubstring("no tensor transformer.h.1.ln_1.weight"));
  with("n_head", 0);
  CHECK_THROWS_WITH(start(shop, "hf"), ContainsSubstring("config.json: n_head is 0; from 1 to 1000000 are possible"));
  with("n_layer", 1000000000);
  CHECK_THROWS_WITH(start(shop, "hf"), ContainsSubstring("n_layer is 1000000000; from 1 to 10000"));
  with("n_layer", "2");
  CHECK_THROWS_WITH(start(shop, "hf"), ContainsSubstring("config.json: n_layer: expected"));
  with("layer_norm_epsilon", 1e-6);
  CHECK_THROWS_WITH(start(shop, "hf"), ContainsSubstring("model.norm_eps 1e-06"));
  with("n_embd", 8);
  CHECK_THROWS_WITH(start(shop, "hf"), ContainsSubstring("transformer.wte.weight has another shape"));
  write_file(path, config);
  const std::string weights = shop.path("hf/model.safetensors");
  const std::string whole = read_file(weights);
  const Safetensors file = Safetensors::read(weights);
  std::vector<StoredTensor> more = file.tensors();
  const std::vector<float> nan(16, std::nanf(""));
  more.push_back(stored("model.odd", {16}, std::span<const float>(nan)));
  write_safetensors(weights, {}, more);
  CHECK_THROWS_WITH(start(shop, "hf"), ContainsSubstring("model.odd has no place in a model here"));
  more.back().name = "wte.weight";
  write_safetensors(weights, {}, more);
  CHECK_THROWS_WITH(start(shop, "hf"), ContainsSubstring("is there twice"));
  more.pop_back();
  const auto bias = std::ranges::find(more, "transformer.ln_f.bias", &StoredTensor::name);
  bias->bytes = std::string_view(reinterpret_cast<const char*>(nan.data()), 64);
  write_safetensors(weights, {}, more);
  CHECK_THROWS_WITH(start(shop, "hf"), ContainsSubstring("transformer.ln_f.bias holds a number that is not finite"));
  bias->dtype = Dtype::I32;
  write_safetensors(weights, {}, more);
  CHECK_THROWS_WITH(start(shop, "hf"),
                    ContainsSubstring("transformer.ln_f.bias is of the type I32; save the model in F32"));
  write_file(weights, whole);
  CHECK(start(shop, "hf").vocab_size() > 0);
  std::filesystem::remove(shop.path("hf/tokenizer.json"));
  CHECK_THROWS_WITH(start(shop, "hf", {"data.tokenizer=byte"}),
                    ContainsSubstring("data.tokenizer one of 256; name the tokenizer it was trained with"));
}

TEST_CASE("on the statistics of prefixes no token sees a later one, and the last sees its whole row", "[run]") {
  const Workshop shop;
  REQUIRE(shop.train("run", {"model.norm=batch"}).code == 0);
  const Checkpoint checkpoint = last_of(shop, "run");
  const Gpt model = checkpoint.model();
  const DataConfig& config = checkpoint.config().data;
  const Dataset data = Dataset::load(config, model.config().context_length, 1337);
  const Index time = model.config().context_length;
  const std::vector<Window> window = {{3, time}};
  const EvalReport prefix = evaluate(model, data, window, kOwnPrefix), row = evaluate(model, data, window, 1);
  const auto last = static_cast<std::size_t>(time - 1);
  CHECK(prefix.loss_by_position[last] == row.loss_by_position[last]);
  CHECK(prefix.loss_by_position[last - 1] !=
        row.loss_by_position[last - 1]);  // the row's statistics saw the last token
  const std::vector<Window> shorter = {{3, time - 4}};
  const EvalReport before = evaluate(model, data, shorter, kOwnPrefix);
  for (std::size_t t = 0; t < last - 4; ++t) CHECK(before.loss_by_position[t] == prefix.loss_by_position[t]);
}
