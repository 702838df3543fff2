// sample and eval from the command line.
#include <cmath>
#include <numbers>

#include "catch.h"
#include "cli_runs.h"
#include "normlab/base/utf8.h"
#include "normlab/formats/safetensors.h"
#include "normlab/train/sampler.h"

using namespace normlab;

namespace {

std::string sampled(const Strings& options) {
  const Finished done = run_program(joined({"sample", trained().path("run")}, options));
  INFO(done.err);
  CHECK(done.code == 0);
  return done.out;
}

bool is_utf8(std::string_view content) {
  while (!content.empty()) {
    const Utf8Step step = utf8_step(content);
    if (step.status != Utf8Step::valid) return false;
    content.remove_prefix(static_cast<std::size_t>(step.length));
  }
  return true;
}

}  // namespace

TEST_CASE("cli: temperature 0 is one text, whatever the seed; otherwise the seed decides", "[cli]") {
  const std::string likeliest = sampled({"--temperature", "0", "--tokens", "40", "--seed", "1"});
  CHECK(sampled({"--temperature", "0", "--tokens", "40", "--seed", "2"}) == likeliest);
  CHECK(sampled({"--tokens", "40", "--top-k", "1"}) == likeliest);
  CHECK(sampled({"--tokens", "40", "--top-p", "0"}) == likeliest);
  const std::string plain = sampled({"--tokens", "40", "--seed", "1"});
  CHECK(plain != likeliest);
  CHECK(sampled({"--tokens", "40", "--seed", "1"}) == plain);
  CHECK(sampled({"--tokens", "40", "--seed", "2"}) != plain);
  CHECK(sampled({"--tokens", "40", "--seed", "1", "--top-k", "0", "--top-p", "1"}) == plain);
  CHECK(sampled({"--tokens", "40", "--seed", "1", "--top-k", "100000"}) == plain);
}

TEST_CASE("cli: the prompt is where the text begins; a long one is cut with a note; texts go on past the context",
          "[cli]") {
  CHECK(sampled({"--tokens", "0", "--prompt", "the "}) == "the \n");
  CHECK(sampled({"--tokens", "0"}) == "\n");
  CHECK(sampled({"--tokens", "48"}).size() == 49);  // three contexts of 16, and the last newline
  const Finished done =
      run_program({"sample", trained().path("run"), "--prompt", "the old man and the sea", "--tokens", "48"});
  CHECK(done.code == 0);
  CHECK(done.out.starts_with("the old man and the sea"));
  CHECK(holds(done.err, "the prompt has 23 tokens; the model sees the last 16"));
}

TEST_CASE("cli: a model of bytes writes whole characters", "[cli]") {
  const Workshop shop;
  std::string content;
  for (int i = 0; i < 200; ++i) content += "\xE2\x82\xAC\xF0\x9F\x98\x80\xC3\xBC";
  REQUIRE(shop.train("run", {"data.source=" + shop.write("text.txt", content), "data.tokenizer=byte"}).code == 0);
  std::filesystem::remove(shop.path("text.txt"));  // the checkpoint is enough
  for (const char* seed : {"1", "2"}) {
    const Finished done =
        run_program({"sample", shop.path("run"), "--seed", seed, "--tokens", "100", "--prompt", "\xE2\x82\xAC"});
    CHECK(done.code == 0);
    CHECK(is_utf8(done.out));
  }
  // The end of a cut character is not left out without a trace, nor printed as half of one.
  const std::string cut = shop.write("cut.txt", "\xE2\x82");
  const Finished shown = run_program({"sample", shop.path("run"), "--prompt-file", cut, "--tokens", "0"});
  CHECK(shown.code == 0);
  CHECK(is_utf8(shown.out));
  CHECK(run_program({"sample", shop.path("run"), "--prompt", "\xE2\x82"}).err ==
        "normlab: sample: --prompt: byte 0 is not UTF-8; --prompt-file takes any bytes\n");
}

TEST_CASE("sample: a text ends before the first of its stop strings, however it comes in pieces", "[cli]") {
  const auto stopped = [](std::vector<std::string> pieces) {
    StopStrings stop({"end.", "\n\n"});
    std::string out;
    for (const std::string& piece : pieces) out += stop.push(piece);
    return out + stop.finish();
  };
  CHECK(stopped({"the e", "n", "d", ". more"}) == "the ");
  CHECK(stopped({"the en", "e", "\n", "x"}) == "the ene\nx");
  CHECK(stopped({"a\n", "\nend."}) == "a");
  CHECK(stopped({"no end"}) == "no end");
  StopStrings stop({"abc"});
  CHECK(stop.push("xxab") == "xx");  // held back
  CHECK_FALSE(stop.met());
  CHECK(stop.push("d") == "abd");
}

TEST_CASE("cli: sample takes its prompt from a file or standard input, gives several texts, and stops", "[cli]") {
  const std::string plain = sampled({"--prompt", "the ", "--tokens", "20", "--seed", "5"});
  CHECK(sampled({"--prompt-file", trained().write("prompt.txt", "the "), "--tokens", "20", "--seed", "5"}) == plain);
  const Finished piped = run_program(
      {"sample", trained().path("run"), "--prompt-file", "-", "--tokens", "20", "--seed", "5"}, {.input = "the "});
  CHECK(piped.out == plain);
  const std::string both = sampled({"--prompt", "the ", "--tokens", "20", "--seed", "4", "--samples", "2"});
  CHECK(holds(both, "--- 1 of 2, seed 4\n"));
  CHECK(both.ends_with("--- 2 of 2, seed 5\n" + plain));
  const std::string rest = plain.substr(4), stop = rest.substr(6, 2);
  CHECK(sampled({"--prompt", "the ", "--tokens", "20", "--seed", "5", "--stop", "@@", "--stop", stop}) ==
        "the " + rest.substr(0, rest.find(stop)) + "\n");
  CHECK(run_program({"sample", trained().path("run"), "--prompt", "a", "--prompt-file", "b"}).code == 2);
  CHECK(run_program({"sample", trained().path("run"), "--stop", ""}).code == 2);
}

TEST_CASE("cli: eval prints the loss, and with --json one document of the fixed keys", "[cli]") {
  const Workshop& shop = trained();
  const Finished plain = run_program({"eval", shop.path("run")});
  CHECK(plain.code == 0);
  CHECK(plain.err.empty());
  CHECK(holds(plain.out, "nats per token"));
  const Finished done = run_program({"eval", shop.path("run"), "--json"});
  CHECK(done.code == 0);
  const Json document = parse_json(done.out, "eval");
  CHECK(names_of(document) == Strings{"loss", "loss_second_half", "loss_by_position", "perplexity", "bits_per_byte",
                                      "tokens", "unigram", "bigram", "floor"});
  CHECK(document.at("loss_by_position").elements().size() == 16);
  const double loss = document.at("loss").real();
  CHECK(document.at("perplexity").real() == Approx(std::exp(loss)));
  CHECK(document.at("bits_per_byte").real() == Approx(loss / std::numbers::ln2));  // a character of tales is a byte
  CHECK(document.at("floor").real() > 0.2);
  CHECK(document.at("tokens").integer() == shop.record("run").at("validation_tokens").integer() - 1);

  const Finished other = run_program(
      {"eval", shop.checkpoint("run", "best"), "--json", "--data", shop.write("other.txt", "the cat and the dog\n")});
  CHECK(other.code == 0);
  const Json second = parse_json(other.out, "eval");
  CHECK(second.at("floor").is_null());
  CHECK(second.at("tokens").integer() == 19);
  const Finished lines =  // a line longer than the context of 16, an empty one, and one of a letter: 20 and 2 targets
      run_program({"eval", shop.path("run"), "--json", "data.documents=lines", "--data",
                   shop.write("lines.txt", "the cat and the dog\n\na\n")});
  CHECK(lines.code == 0);
  CHECK(parse_json(lines.out, "eval").at("tokens").integer() == 22);
  const Finished outside = run_program({"eval", shop.path("run"), "--data", shop.write("greek.txt", "the \xCE\xA9\n")});
  CHECK(outside.code == 2);
  CHECK_THAT(outside.err, ContainsSubstring("U+03A9") && ContainsSubstring("greek.txt"));
}

TEST_CASE("cli: eval --logits writes whole windows' tokens and logits", "[cli]") {
  const Workshop& shop = trained();
  REQUIRE(run_program({"eval", shop.path("run"), "--logits", shop.path("logits.safetensors")}).code == 0);
  const Safetensors file = Safetensors::read(shop.path("logits.safetensors"));
  CHECK(file.at("tokens").shape == std::vector<std::int64_t>{8, 16});
  CHECK(file.at("logits").shape[2] > 20);
}

TEST_CASE("cli: the validation loss does not depend on the number of threads", "[cli]") {
  const Workshop& shop = trained();
  const std::string one = run_program({"eval", shop.path("run"), "--json"}).out;
  CHECK(run_program({"eval", shop.path("run"), "--json", "train.threads=3"}).out == one);
}

TEST_CASE("cli: a damaged checkpoint is refused by name, never read", "[cli]") {
  const Workshop& shop = trained();
  const std::string whole = read_file(shop.checkpoint("run", "step-000005"));
  std::string flipped = whole;
  flipped[whole.size() / 2] = static_cast<char>(flipped[whole.size() / 2] ^ 1);
  for (const std::string& bytes : {whole.substr(0, whole.size() - 1), whole.substr(0, 100), std::string(), flipped}) {
    const std::string path = shop.write("damaged.safetensors", bytes);
    for (const Strings& words : {Strings{"sample", path}, {"eval", path}}) {
      const Finished done = run_program(words);
      INFO(words[0] << ' ' << bytes.size() << ": " << done.err);
      CHECK(done.code == 2);
      CHECK(done.out.empty());
      CHECK(holds(done.err, "damaged.safetensors"));
    }
  }
  CHECK(shop.train("torn").code == 0);
  write_file(shop.checkpoint("torn", "step-000005"), flipped);
  const Finished resumed = run_program({"train", "--resume", shop.path("torn"), "train.steps=8"});
  CHECK(resumed.code == 2);
  CHECK(holds(resumed.err, "step-000005.safetensors"));
  CHECK(lines_of(shop.metrics("torn")).size() == 8);
}
