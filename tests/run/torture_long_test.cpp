// Long runs: memory and files after 20,000 steps; and the memory told before a run, against what it took.
#include <chrono>
#include <cmath>
#include <thread>

#include "normlab/base/utf8.h"
#include "torture.h"

using namespace normlab;

namespace {

// In MB; 0 where the process is gone.
double resident_mb(pid_t process) {
  std::FILE* file = std::fopen(text("/proc/", static_cast<std::int64_t>(process), "/status").c_str(), "r");
  if (!file) return 0;
  double found = 0;
  char line[256];
  while (std::fgets(line, sizeof line, file)) {
    long value = 0;
    if (std::sscanf(line, "VmRSS: %ld", &value) == 1) found = static_cast<double>(value) / 1024;
  }
  std::fclose(file);
  return found;
}

std::vector<Json> timing_lines(const Workshop& shop) {
  std::vector<Json> lines;
  if (shop.exists("run/timing.jsonl"))
    for (const std::string& line : lines_of(read_file(shop.path("run/timing.jsonl"))))
      lines.push_back(parse_json(line, "timing.jsonl"));
  return lines;
}

double told_mb(const Finished& done) {
  const std::string lead = "memory: about ";
  const std::size_t at = done.err.find(lead) + lead.size();
  return parse_double(done.err.substr(at, done.err.find(' ', at) - at)).value_or(0);
}

}  // namespace

TEST_CASE("torture: 20000 steps of a small model take no more memory than 50, and the files that were computed",
          "[run][.torture]") {
  const Workshop shop;
  // One layer, d_model 4, d_ff 16, T 8, learned positions, tied head: the smallest that has every kind of tensor.
  const Strings settings{"model.d_model=4",      "model.n_heads=1",   "model.context_length=8",
                         "train.batch_size=1",   "train.steps=20000", "eval.every=1000",
                         "eval.windows=4",       "log.every=50",      "log.layers_every=1000",
                         "checkpoint.every=500", "checkpoint.keep=3"};
  Process process(shop.training("run", settings));
  while (timing_lines(shop).empty() && !process.has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const double at_50 = resident_mb(process.id());
  double at_end = at_50, most = at_50;
  while (!process.has_ended()) {
    if (const double now = resident_mb(process.id()); now > 0) at_end = now;
    most = std::max(most, at_end);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const Finished done = process.wait();
  INFO(done.err);
  REQUIRE(done.code == 0);
  tell("20,000 steps: ", fixed(at_50, 1), " MB resident at step 50, ", fixed(at_end, 1), " MB at the end, ",
       fixed(most, 1), " MB at most");
  CHECK(std::fabs(at_end - at_50) <= 0.05 * at_50);

  std::map<std::string, int> kinds;
  for (const std::string& line : lines_of(shop.metrics("run")))
    ++kinds[parse_json(line, "metrics.jsonl").at("kind").string()];
  CHECK(kinds == std::map<std::string, int>{{"run", 1}, {"train", 20000}, {"eval", 20}, {"layers", 20}});
  // A number has at most 24 characters; the longest train line is its five numbers, the step, the keys and the
  // checksum.
  CHECK(shop.metrics("run").size() < 20000 * 170 + 40 * 4000);
  const std::vector<Json> timing = timing_lines(shop);
  CHECK(timing.size() == 400);
  CHECK(names_in(shop.path("run/checkpoints")) ==
        Strings{"best.safetensors", "step-019000.safetensors", "step-019500.safetensors", "step-020000.safetensors"});
  // V C + T C for the embeddings; attention 4 C^2, MLP 2 C F, biases 4 C + F + C, three norms of 2 C; thrice, with
  // AdamW's averages, in four bytes.
  const Checkpoint checkpoint(shop.checkpoint("run", "step-020000"));
  const std::int64_t vocab = checkpoint.tokenizer().vocab_size(), channels = 4, hidden = 16, time = 8;
  const std::int64_t numbers = (vocab + time) * channels + 4 * channels * channels + 2 * channels * hidden +
                               4 * channels + hidden + channels + 6 * channels;
  const std::string bytes = read_file(checkpoint.path());
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  CHECK(bytes.size() == 8 + header + static_cast<std::size_t>(12 * numbers));
  CHECK(read_file(shop.checkpoint("run", "step-019000")).size() / 64 == bytes.size() / 64);

  const auto rate = [&](std::size_t from, std::size_t to) {
    return 50 * static_cast<double>(to - from) / (timing[to].at("seconds").real() - timing[from].at("seconds").real());
  };
  std::string rates;
  for (std::size_t i = 0; i + 80 <= 400; i += 80) rates += text(' ', fixed(rate(i, i + 79), 0));
  tell("steps/s over each fifth of the run:", rates, "; metrics.jsonl ", shop.metrics("run").size(),
       " bytes, checkpoint ", bytes.size(), " bytes");
}

TEST_CASE("torture: the memory told before a run is within a fifth of its peak, for configurations of all kinds",
          "[run][.torture]") {
  const Workshop shop;
  // 40 MB of words, of which there are half a million.
  std::string words_text;
  Random random(1, "words");
  while (words_text.size() < 40000000) {
    std::uint64_t word = random.below(500000) + 500000;
    for (; word > 0; word /= 20) words_text += static_cast<char>('a' + word % 20);
    words_text += random.below(10) == 0 ? '\n' : ' ';
  }
  const std::string file = "data.source=" + shop.write("words.txt", words_text);
  std::string characters_text;
  for (char32_t c = 0x10000; c < 0x20000; ++c) append_utf8(characters_text, c);
  const std::string characters = "data.source=" + shop.write("characters.txt", characters_text);
  shop.write("empty.yaml", "seed: 1\n");
  const std::vector<Strings> configurations{
      {"model.d_model=16", "model.n_layers=1", "model.context_length=16"},
      {"model.d_model=128", "model.n_layers=8", "model.norm=rms", "model.activation=swiglu", "model.position=rope"},
      {"model.d_model=192", "model.n_heads=6", "model.placement=post", "model.context_length=256",
       "train.batch_size=4"},
      {"model.d_model=256", "model.placement=sandwich", "train.batch_size=8", "model.context_length=128"},
      {"model.d_model=384", "model.n_heads=6", "model.placement=deepnorm", "model.n_layers=6"},
      {"model.d_model=128", "model.n_layers=24", "model.norm=batch", "train.batch_size=32"},
      {"model.d_model=256", "model.norm=dyt", "train.grad_accumulation=4", "model.tie_embeddings=false"},
      {"model.d_model=128", "data.tokenizer=byte", "train.batch_size=64", "model.dropout=0.1", "model.n_layers=2"},
      {"model.d_model=128", "model.placement=none", "model.norm=none", "log.layers_every=0", "train.batch_size=48"},
      {"model.d_model=96", "model.n_heads=3", "model.placement=res_post", "model.context_length=512",
       "data.tokenizer=bpe", "data.vocab_size=1000", "optimizer.name=sgd"},
      {"data.size=50000000"},
      {"data.size=50000000", "data.source=copy", "train.threads=2"},
      {file, "data.tokenizer=byte"},
      {file, "data.tokenizer=byte", "model.d_model=16", "train.threads=2"},
      {file, "data.tokenizer=bpe", "data.vocab_size=1000"},
      {file, "data.tokenizer=char", "data.rot13=batch", "model.d_model=32"},
      {"log.curvature_every=1"},
      {"log.curvature_every=1", "model.d_model=64", "train.batch_size=32", "train.threads=2"},
      {"train.batch_size=4", "model.d_model=64", "train.grad_accumulation=512"},
      {"train.batch_size=1", "model.context_length=1024"},
      {"train.batch_size=2", "model.context_length=1024", "model.placement=sandwich", "model.d_model=256",
       "model.activation=swiglu", "model.position=rope", "model.n_layers=2"},
      {characters, "train.batch_size=1", "model.d_model=64", "model.context_length=128", "model.tie_embeddings=false"},
      {characters, "train.batch_size=2", "model.d_model=64", "model.context_length=128"},
      {"data.size=2000", "data.validation=" + shop.path("words.txt")},
      {"model.n_layers=200", "model.d_model=8"},
      {"model.n_layers=1000", "model.d_model=8", "train.batch_size=1"},
      {"data.size=3000000", "data.tokenizer=bpe", "data.vocab_size=600", "data.documents=lines", "model.d_model=16"},
      {"train.grad_accumulation=20000", "train.batch_size=1", "model.d_model=8", "model.n_layers=1"}};
  double worst = 0;
  for (const Strings& words : configurations) {
    const Finished done =
        run_program(joined({"train", shop.path("empty.yaml"), "--force", "--stop-at", "2", "data.size=200000",
                            "log.every=1", "eval.every=1", "eval.windows=32", "run.dir=" + shop.path("run")},
                           words));
    CAPTURE(words, done.err);
    REQUIRE(done.code == 0);
    const double told = told_mb(done), peak = timing_lines(shop).back().at("peak_rss_mb").real();
    std::string name = join(words, " ");
    tell(fixed(told, 0), " MB told, ", fixed(peak, 0), " MB at the peak (", fixed(100 * (told / peak - 1), 0),
         "%): ", name);
    CHECK(std::fabs(told - peak) < 0.2 * peak);
    worst = std::max(worst, std::fabs(told / peak - 1));
  }
  tell("the memory told of ", configurations.size(), " runs is within ", fixed(100 * worst, 0), "% of their peaks");
}
