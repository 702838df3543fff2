// The arena, what a step asks of the system, and the estimate of a run's memory.
#include "normlab/base/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>

#include "catch.h"
#include "normlab/base/check.h"
#include "normlab/base/rng.h"
#include "normlab/host/files.h"
#include "normlab/host/limits.h"
#include "normlab/nn/gpt.h"
#include "normlab/optim/optimizer.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/memory_estimate.h"
#include "program.h"
#include "temporary.h"

using namespace normlab;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kChecked = true;
#elif defined(__has_feature)
constexpr bool kChecked = __has_feature(address_sanitizer);
#else
constexpr bool kChecked = false;
#endif

TEST_CASE("the arena hands out aligned blocks that do not overlap, and joins what is released", "[run]") {
  if (kChecked) return;                                          // the sanitizer's own memory is not ours to plan
  constexpr std::size_t kSize = (std::size_t{64} << 20) - 1000;  // no test leaves a hole as large
  std::byte* blocks[4];
  for (std::byte*& block : blocks) {
    block = static_cast<std::byte*>(allocate(kSize));
    REQUIRE(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
    block[0] = block[kSize - 1] = static_cast<std::byte>(&block - blocks);
  }
  for (std::byte*& block : blocks) {
    REQUIRE(block[0] == static_cast<std::byte>(&block - blocks));
    REQUIRE(block[kSize - 1] == static_cast<std::byte>(&block - blocks));
  }
  for (const int i : {1, 3, 2, 0}) release(blocks[i], kSize);
  void* all = allocate(4 * kSize);
  CHECK(all == *std::min_element(std::begin(blocks), std::end(blocks)));
  release(all, 4 * kSize);
}

namespace {

// Minor page faults of this process so far.
long faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Words of five letters, most of them there once.
std::string random_words(int count) {
  Random random(1, "words");
  std::string out;
  for (int i = 0; i < count; ++i) {
    for (int letter = 0; letter < 5; ++letter) out += static_cast<char>('a' + random.below(26));
    out += i % 10 == 9 ? '\n' : ' ';
  }
  return out;
}

}  // namespace

TEST_CASE("after five steps, twenty more meet fewer than 100 page faults", "[run][slow]") {
  if (kChecked) return;
  ModelConfig config;
  config.resolve();
  const Gpt model(config, 65, 1);
  Optimizer optimizer({}, model.store());
  const std::vector<std::int32_t> tokens(static_cast<std::size_t>(12 * config.context_length), 7);
  const Batch batch{12, config.context_length, tokens, tokens, {}, {}};
  const auto steps = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t t = from; t <= to; ++t) {
      model.store().clear_gradients();
      Pass pass{.training = true};
      backward(model.loss(batch, pass));
      optimizer.step(t, 1e-3, clip_coefficient(1, gradient_norm(model.store())));
    }
  };
  steps(1, 5);
  const long before = faults();
  steps(6, 25);
  CHECK(faults() - before < 100);
}

namespace {

// In MB: what a run was told to take, and what it took at its peak.
struct Memory {
  double told, peak;
};

// Of a run with an evaluation; `run` is where it lies.
Memory memory_of(const std::vector<std::string>& command, const std::string& run) {
  const Finished done = run_program(command);
  INFO(done.err);
  REQUIRE(done.code == 0);
  const std::string lead = "memory: about ";
  const double told = std::stod(done.err.substr(done.err.find(lead) + lead.size()));
  const std::string timing = read_file(run + "/timing.jsonl"), key = "\"peak_rss_mb\":";
  return {told, std::stod(timing.substr(timing.rfind(key) + key.size()))};
}

std::vector<std::string> training(const TemporaryDirectory& directory, const std::vector<std::string>& words) {
  write_file(directory.path("empty.yaml"), "seed: 1\n");
  std::vector<std::string> command{"train",
                                   directory.path("empty.yaml"),
                                   "--force",
                                   "--stop-at",
                                   "2",
                                   "data.size=200000",
                                   "log.every=1",
                                   "eval.every=1",
                                   "eval.windows=16",
                                   "log.sample_tokens=8",
                                   "run.dir=" + directory.path("run")};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

}  // namespace

TEST_CASE("the memory told before a run is within a fifth of its peak", "[run][slow]") {
  if (kChecked) return;
  const TemporaryDirectory directory;
  write_file(directory.path("words.txt"), random_words(400000));
  const std::string words_file = "data.source=" + directory.path("words.txt");
  const std::vector<std::vector<std::string>> settings{
      {},
      {"model.n_layers=12", "model.d_model=64", "train.batch_size=16"},
      {"model.d_model=256", "model.placement=post", "model.activation=swiglu", "model.position=rope"},
      {"model.d_model=256", "model.dropout=0.1", "log.layers_every=0"},
      {"model.d_model=64", "model.norm=batch", "train.batch_size=64", "optimizer.name=sgd"},
      // What reading, drawing and tokenising take is more than training does here.
      {"model.d_model=16", "data.size=8000000"},
      {"model.d_model=16", words_file, "data.tokenizer=byte", "data.rot13=sample"},
      {"model.d_model=16", words_file, "data.tokenizer=bpe", "data.vocab_size=280"},
      {"model.d_model=32", "model.n_layers=2", "log.curvature_every=1", "train.threads=2"},
      // Many parts; an evaluation of more rows than training has; many small tensors.
      {"model.d_model=64", "model.n_layers=2", "train.batch_size=4", "train.grad_accumulation=64"},
      {"model.d_model=64", "train.batch_size=1", "model.context_length=512"},
      {"model.d_model=8", "model.n_layers=200", "train.batch_size=1", "model.context_length=8"}};
  for (const std::vector<std::string>& words : settings) {
    const auto [told, peak] = memory_of(training(directory, words), directory.path("run"));
    CAPTURE(words, told, peak);
    CHECK(std::fabs(told - peak) < 0.2 * peak);
  }
}

TEST_CASE("an update in 64 parts takes hardly more memory than one in a single part", "[run][slow]") {
  if (kChecked) return;
  const TemporaryDirectory directory;
  const auto peak = [&](const char* parts) {
    return memory_of(training(directory, {"model.d_model=64", "model.n_layers=2", "train.batch_size=4",
                                          text("train.grad_accumulation=", parts)}),
                     directory.path("run"))
        .peak;
  };
  CHECK(peak("64") < 1.15 * peak("1"));
}

TEST_CASE("a resumed run lets its checkpoint go, and the memory told is within a fifth of its peak", "[run][slow]") {
  if (kChecked) return;
  const TemporaryDirectory directory;
  const std::string run = directory.path("run");
  memory_of(training(directory, {"model.d_model=256", "train.batch_size=4"}), run);
  const auto [told, peak] = memory_of({"train", "--resume", run, "--stop-at", "3"}, run);
  CAPTURE(told, peak);
  CHECK(std::fabs(told - peak) < 0.2 * peak);
  // Twelve bytes a parameter in the file, and as many in weights and averages while these are filled from it.
  const double parameter_mb =
      static_cast<double>(Checkpoint(run + "/checkpoints/step-000003.safetensors").model().store().parameter_count()) /
      (1 << 20);
  CHECK(peak < 12 + 26 * parameter_mb);
}

TEST_CASE("the size of a model is known before it is built", "[run]") {
  int built = 0;
  for (int norm = 0; norm <= static_cast<int>(NormKind::fixed); ++norm)
    for (int placement = 0; placement <= static_cast<int>(Placement::none); ++placement)
      for (int other = 0; other < 4; ++other) {
        ModelConfig config;
        config.norm = static_cast<NormKind>(norm);
        config.placement = static_cast<Placement>(placement);
        config.n_layers = 2 + other;
        config.d_model = 8;
        config.context_length = 5;
        config.bias = other % 2 == 0;
        config.tie_embeddings = other < 2;
        config.position = other == 1 ? Position::rope : other == 2 ? Position::sinusoidal : Position::learned;
        config.activation = other == 3 ? MlpActivation::swiglu : MlpActivation::relu;
        if (other == 2) config.d_ff = 13;
        try {
          config.resolve();
        } catch (const ConfigError&) {
          continue;  // a norm without a place, or the other way round
        }
        ++built;
        const Gpt model(config, 11, 1);
        const ModelSize size = model_size(config, 11);
        CAPTURE(norm, placement, other);
        CHECK(size.numbers == static_cast<double>(model.store().parameter_count()));
        CHECK(size.parameters == static_cast<double>(model.store().parameters().size()));
        CHECK(size.buffers == static_cast<double>(model.store().buffers().size()));
      }
  CHECK(built >= 200);
}

TEST_CASE("an estimate above the limit is refused, unless train.memory_check is off", "[run]") {
  RunConfig config;
  config.resolve();
  const double needed = estimate_memory(config, {}, 100).total();
  const auto require = [&](double bytes) { require_memory(config, {}, 100, 0, MemoryLimit{bytes, "a test"}); };
  CHECK_NOTHROW(require(needed));
  CHECK_THROWS_AS(require(0.99 * needed), ConfigError);
  config.train.memory_check = false;
  CHECK_NOTHROW(require(0.99 * needed));
}

TEST_CASE("a run whose estimate is above the limit of its address space is refused, and a sweep has fewer at a time",
          "[run][slow]") {
  if (kChecked) return;  // the sanitizer reserves more than any limit
  const TemporaryDirectory directory;
  Surroundings around{.environment = {{"OMP_NUM_THREADS", "2"}}};
  const Finished free = run_program(training(directory, {"model.d_model=64", "model.n_layers=1"}), around);
  CHECK(free.code == 0);
  write_file(directory.path("two.yaml"), "base: empty.yaml\nseeds: [1, 2]\n");
  const auto at_a_time = [&] {
    const Finished done =
        run_program({"sweep", directory.path("two.yaml"), "run.dir=" + directory.path("two"), "--force",
                     "model.d_model=512", "model.n_layers=2", "train.steps=1", "train.batch_size=1", "data.size=5000"},
                    around);
    const std::size_t end = done.err.find(" at a time");
    INFO(done.err);
    REQUIRE(end != std::string::npos);
    return done.err[end - 1];
  };
  // 20 bytes for each of 12 * 512^2 * 2 parameters are 126 MB.
  around.memory_limit = rlim_t{240} << 20;
  CHECK(at_a_time() == '1');
  around.memory_limit.reset();
  if (allowed_threads().count > 1) CHECK(at_a_time() == '2');
  around.memory_limit = rlim_t{300} << 20;
  const Finished done = run_program(training(directory, {"model.d_model=768", "model.n_layers=4"}), around);
  INFO(done.err);
  CHECK(done.code == 2);
  CHECK_THAT(done.err, ContainsSubstring("there are 300 MB (the process's limit, ulimit -v"));
}

TEST_CASE("a model of 122 TB is refused with both figures before anything is written", "[run]") {
  const TemporaryDirectory directory;
  // 12 d^2 numbers a layer, each with gradient, two moments and a copy: 20 bytes; 240 d^2 L = 1.22e14 at L = 508.
  const Finished done = run_program(
      training(directory, {"model.d_model=31624", "model.n_heads=4", "model.n_layers=508", "data.size=5000"}));
  CAPTURE(done.err);
  CHECK(done.code == 2);
  const std::size_t at = done.err.find("this needs about ");
  REQUIRE(at != std::string::npos);
  const double told = std::stod(done.err.substr(at + 17));
  CHECK(std::fabs(told * (1 << 20) - 1.22e14) < 0.02 * 1.22e14);
  CHECK(done.err.find(" MB (") != std::string::npos);
  CHECK(done.err.find("model.d_model (31624), model.n_layers (508)") != std::string::npos);
  CHECK(!std::filesystem::exists(directory.path("run")));
}
