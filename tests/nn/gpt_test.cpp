// The decoder: names, initial values, placement, what a position sees, and its cached form.
#include "normlab/nn/gpt.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "normlab/data/tokenizer/tokenizer.h"
#include "normlab/train/sampler.h"
#include "support.h"

using namespace normlab;

namespace {

ModelConfig small(NormKind norm = NormKind::layer, Placement placement = Placement::pre) {
  ModelConfig config;
  config.n_layers = 2;
  config.n_heads = 2;
  config.d_model = 12;
  config.context_length = 9;
  config.norm = norm;
  config.placement = placement;
  config.resolve();
  return config;
}

std::vector<std::int32_t> some_tokens(std::size_t count, Index vocab, std::uint64_t seed = 3) {
  Random random(seed, "tokens");
  std::vector<std::int32_t> tokens;
  while (tokens.size() < count)
    tokens.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocab))));
  return tokens;
}

std::vector<Real> logits_of(const Gpt& model, Shape batch_time, const std::vector<std::int32_t>& tokens,
                            bool training = false) {
  Pass pass;
  pass.training = training;
  const Tensor logits = model.logits(batch_time, tokens, pass);
  return {logits.values().begin(), logits.values().end()};
}

double initial_loss(const ModelConfig& config, Index vocab) {
  const Gpt model(config, vocab, 1337);
  const Index rows = 8, time = config.context_length;
  const auto some = [&](std::uint64_t seed) { return some_tokens(static_cast<std::size_t>(rows * time), vocab, seed); };
  Pass pass{.training = true};
  return model.loss({rows, time, some(5), some(6), {}, {}}, pass).item();
}

const Tensor& named(const Gpt& model, const std::string& name) {
  for (const Named& parameter : model.store().parameters())
    if (parameter.name == name) return parameter.tensor;
  throw std::runtime_error("no parameter " + name);
}

}  // namespace

TEST_CASE("parameters have the names and shapes of the interface", "[nn]") {
  ModelConfig config = small();
  config.activation = MlpActivation::swiglu;
  config.tie_embeddings = false;
  const Gpt model(config, 11, 1);
  std::vector<std::string> names;
  for (const Named& parameter : model.store().parameters())
    names.push_back(text(parameter.name, ' ', parameter.tensor.shape()));
  for (const char* expected :
       {"tok_embed.weight [11, 12]", "pos_embed.weight [9, 12]", "head.weight [11, 12]",
        "blocks.0.attn.qkv.weight [36, 12]", "blocks.0.attn.qkv.bias [36]", "blocks.1.attn.out.weight [12, 12]",
        "blocks.1.attn.out.bias [12]", "blocks.0.mlp.up.weight [48, 12]", "blocks.0.mlp.gate.weight [48, 12]",
        "blocks.0.mlp.gate.bias [48]", "blocks.0.mlp.down.weight [12, 48]", "blocks.0.mlp.down.bias [12]",
        "blocks.0.attn_norm.weight [12]", "blocks.0.attn_norm.bias [12]", "blocks.1.mlp_norm.weight [12]",
        "final_norm.weight [12]", "final_norm.bias [12]"}) {
    INFO(expected);
    CHECK(std::ranges::count(names, expected) == 1);
  }
  CHECK(names.size() == 3 + 2 * (2 + 2 + 2 + 2 + 2 + 2 + 2) + 2);
}

TEST_CASE("a tied model has one matrix, RMSNorm no bias, Post-LN no final norm", "[nn]") {
  const Gpt model(small(NormKind::rms, Placement::post), 11, 1);
  for (const Named& parameter : model.store().parameters()) {
    CHECK(parameter.name != "head.weight");
    CHECK(parameter.name.find("norm.bias") == std::string::npos);
    CHECK(parameter.name.find("final_norm") == std::string::npos);
  }
}

TEST_CASE("initial values have the deviation that their initialisation says", "[nn]") {
  ModelConfig config = small();
  config.d_model = 64;
  config.d_ff.reset();
  config.init = GENERATE(Initialisation::gpt2, Initialisation::xavier);
  config.embed_std.reset();
  config.tie_embeddings = false;
  config.resolve();
  const bool xavier = config.init == Initialisation::xavier;
  const Gpt model(config, 50, 1);
  const auto deviation = [&](const char* name) {
    double squares = 0;
    for (const Real value : named(model, name).values())
      squares += static_cast<double>(value) * static_cast<double>(value);
    return std::sqrt(squares / static_cast<double>(named(model, name).values().size()));
  };
  // The deviation of n normal draws is known to 1 / sqrt(2 n): 1.3% for the smallest matrix here; 5% is four times
  // that.
  const auto near = [](double expected) { return Approx(expected).epsilon(0.05); };
  CHECK(deviation("tok_embed.weight") == near(xavier ? 1 : 0.02));
  CHECK(deviation("blocks.0.attn.qkv.weight") == near(xavier ? std::sqrt(2.0 / (64 + 64)) : 0.02));
  CHECK(deviation("blocks.0.attn.out.weight") == near(xavier ? std::sqrt(2.0 / (64 + 64)) : 0.02 / std::sqrt(4.0)));
  CHECK(deviation("blocks.0.mlp.up.weight") == near(xavier ? std::sqrt(2.0 / (64 + 256)) : 0.02));
  CHECK(deviation("blocks.0.mlp.down.weight") == near(xavier ? std::sqrt(2.0 / (64 + 256)) : 0.02 / std::sqrt(4.0)));
  CHECK(deviation("head.weight") == near(xavier ? std::sqrt(2.0 / (64 + 50)) : 0.02));
}

TEST_CASE("with gpt2 initialisation the first loss is ln V, for every norm, placement and kind of head", "[nn]") {
  const NormKind norm = GENERATE(NormKind::layer, NormKind::rms, NormKind::batch, NormKind::none);
  const Placement placement = GENERATE(Placement::pre, Placement::post, Placement::none);
  if (placement == Placement::none && norm != NormKind::none) return;  // refused
  const bool tied = GENERATE(true, false);
  ModelConfig config = small(norm, placement);
  config.d_model = 64;
  config.n_heads = 4;
  config.d_ff.reset();
  config.tie_embeddings = tied;
  config.resolve();
  INFO(config::to_string(norm) << " " << config::to_string(placement) << " tied " << tied);
  CHECK(initial_loss(config, 65) == Approx(std::log(65.0)).epsilon(0.05));
}

TEST_CASE("Pre-LN with sublayers of zero is an identity highway", "[nn]") {
  const NormKind norm = GENERATE(NormKind::layer, NormKind::rms, NormKind::batch);
  const Gpt model(small(norm, Placement::pre), 11, 1);
  for (const char* part : {"attn.out", "mlp.down"})
    for (Index block = 0; block < 2; ++block)
      std::ranges::fill(named(model, text("blocks.", block, '.', part, ".weight")).values(), Real(0));
  struct LastBlock : Probe {
    std::vector<Real> values;
    void see(Site site, Index, const Tensor& x, Mask) override {
      if (site == Site::block_output) values.assign(x.values().begin(), x.values().end());
    }
  } probe;
  const auto tokens = some_tokens(18, 11);
  Pass pass;
  pass.training = true;
  pass.probe = &probe;
  model.hidden({2, 9}, tokens, pass);
  for (std::size_t i = 0; i < probe.values.size(); ++i) {
    const std::size_t row = i / 12, channel = i % 12;
    const Real embedded =
        named(model, "tok_embed.weight").values()[static_cast<std::size_t>(tokens[row]) * 12 + channel] +
        named(model, "pos_embed.weight").values()[row % 9 * 12 + channel];
    REQUIRE(probe.values[i] == embedded);
  }
}

TEST_CASE("Post-LN with sublayers of zero is the norm applied once a sublayer", "[nn]") {
  const NormKind norm = GENERATE(NormKind::layer, NormKind::rms, NormKind::batch);
  ModelConfig config = small(norm, Placement::post);
  config.n_layers = 1;
  const Gpt model(config, 11, 1);
  for (const char* part : {"blocks.0.attn.out.weight", "blocks.0.mlp.down.weight"})
    std::ranges::fill(named(model, part).values(), Real(0));
  const auto tokens = some_tokens(18, 11);
  Pass pass;
  pass.training = true;
  const Tensor hidden = model.hidden({2, 9}, tokens, pass);
  const Tensor embedded =
      ops::embedding({2, 9}, tokens, {}, named(model, "tok_embed.weight"), named(model, "pos_embed.weight"), 0);
  const ops::NormView view = norm == NormKind::batch ? ops::NormView{1, 18, 12, 12} : ops::NormView{18, 12, 1, 12};
  const ops::NormRule rule{norm != NormKind::rms, 1e-5};
  const Tensor twice = ops::normalize(ops::normalize(embedded, view, rule, {}, {}, {}), view, rule, {}, {}, {});
  // Gain 1 and bias 0 change no bit.
  for (std::size_t i = 0; i < hidden.values().size(); ++i) REQUIRE(hidden.values()[i] == twice.values()[i]);
}

TEST_CASE("a position does not see later ones, and a sample is the same alone and in company", "[nn]") {
  const NormKind norm = GENERATE(NormKind::layer, NormKind::rms, NormKind::none, NormKind::batch);
  const Placement placement = GENERATE(Placement::pre, Placement::post);
  const Position position = GENERATE(Position::learned, Position::rope);
  ModelConfig config = small(norm, placement);
  config.position = position;
  const Gpt model(config, 11, 1);
  auto tokens = some_tokens(18, 11);
  // Batch norm only in evaluation: in training it sees both.
  const bool training = norm != NormKind::batch;
  const auto before = logits_of(model, {2, 9}, tokens, training);
  tokens[5] = (tokens[5] + 1) % 11;
  const auto after = logits_of(model, {2, 9}, tokens, training);
  CHECK(std::equal(before.begin(), before.begin() + 5 * 11, after.begin()));
  CHECK(!std::equal(before.begin() + 5 * 11, before.begin() + 9 * 11, after.begin() + 5 * 11));
  CHECK(std::equal(before.begin() + 9 * 11, before.end(), after.begin() + 9 * 11));
  const auto alone = logits_of(model, {1, 9}, {tokens.begin(), tokens.begin() + 9}, training);
  CHECK(std::equal(alone.begin(), alone.end(), after.begin()));
}

TEST_CASE("batch norm in training lets a position see later ones and other samples", "[nn]") {
  const Gpt model(small(NormKind::batch), 11, 1);
  auto tokens = some_tokens(18, 11);
  const auto before = logits_of(model, {2, 9}, tokens, true);
  tokens[5] = (tokens[5] + 1) % 11;
  const auto after = logits_of(model, {2, 9}, tokens, true);
  CHECK(!std::equal(before.begin(), before.begin() + 5 * 11, after.begin()));
  CHECK(!std::equal(before.begin() + 9 * 11, before.end(), after.begin() + 9 * 11));
}

TEST_CASE("sampling with the key/value cache equals sampling without, past the context too", "[nn]") {
  const NormKind norm = GENERATE(NormKind::layer, NormKind::batch);
  const Position position = GENERATE(Position::learned, Position::sinusoidal, Position::rope);
  ModelConfig config = small(norm);
  config.position = position;
  const Gpt model(config, 11, 1);
  SampleOptions options;
  options.temperature = 1;
  const auto prompt = some_tokens(4, 11);
  Sampler cached(model, prompt, options), plain(model, prompt, options, Sampler::Cache::off);
  for (int i = 0; i < 27; ++i) REQUIRE(cached.next() == plain.next());
}

TEST_CASE("choosing a token", "[nn]") {
  const std::vector<Real> logits{1, 3, 3, 0};
  Random random(1, "choose");
  SampleOptions options;
  options.temperature = 0;
  CHECK(choose(logits, options, random) == 1);  // the lower of two equals
  options.temperature = 1;
  options.top_k = 1;
  CHECK(choose(logits, options, random) == 1);
  options.top_k = 0;
  options.top_p = 0;  // keeps one
  CHECK(choose(logits, options, random) == 1);
  options.top_p = 1;
  options.top_k = 99;
  std::vector<int> counts(4);
  for (int i = 0; i < 20000; ++i) ++counts[static_cast<std::size_t>(choose(logits, options, random))];
  // softmax of 1 3 3 0: .0617 .4560 .4560 .0227 up to .01, seven times the deviation of 20,000 draws
  CHECK(counts[0] / 20000.0 == Approx(.0617).margin(.01));
  CHECK(counts[1] / 20000.0 == Approx(.4560).margin(.01));
  CHECK(counts[3] / 20000.0 == Approx(.0227).margin(.01));
}

TEST_CASE("random draws and initial values are the same under every compiler", "[nn]") {
  // Hash of the bits of all initial values, FNV-1a; computed once by this program under g++ and clang++.
  const Gpt model(small(), 11, 1337);
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const Named& parameter : model.store().parameters())
    for (const Real value : parameter.tensor.values()) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ ((bits >> shift) & 255)) * 0x100000001B3u;
    }
  CHECK(hash == 0x2664c421a9c5998cu);
}
