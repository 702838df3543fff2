// Sweeps, reports and diffs as a user meets them.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "catch.h"
#include "cli_runs.h"

using namespace normlab;

namespace {

const std::string kSweep = R"(id: T1
title: A <test>
base: tiny.yaml
seeds: [1, 2]
grid:
  model.placement: [pre, post]
claims:
  - claim: Every run has a loss below a hundred
    form: below
    bound: 100
    where: {model.placement: [pre, post]}
  - claim: Pre-LN is far ahead
    form: margin
    by: 50
    where: {model.placement: pre}
    than: {model.placement: post}
)";

Strings sorted_lines(const std::string& path) {
  Strings lines = lines_of(read_file(path));
  std::ranges::sort(lines);
  return lines;
}

}  // namespace

TEST_CASE("cli: a sweep has results, verdicts, a report; the same again is done at once", "[cli]") {
  const Workshop shop;
  const std::string file = shop.write("two.yaml", kSweep), directory = shop.path("sweep");
  const Finished done = run_program({"sweep", file, "run.dir=" + directory, "train.steps=3", "--json"});
  INFO(done.out << done.err);
  CHECK(done.code == 1);  // the second claim
  CHECK(holds(done.err, "4 of 4 points to measure"));
  CHECK(holds(done.err, "about 0:"));
  CHECK(holds(done.err, "4/4 "));
  CHECK(done.err.find('\r') == std::string::npos);
  const Json document = parse_json(done.out, "sweep");
  CHECK(document.at("runs").elements().size() == 4);
  CHECK(document.at("claims").elements()[0].at("verdict") == Json("holds"));
  CHECK(document.at("claims").elements()[1].at("verdict") == Json("fails"));
  const Strings lines = lines_of(read_file(directory + "/results.jsonl"));
  CHECK(lines.size() == 4);
  const Json first = parse_json(lines.at(0), "results.jsonl");
  CHECK(first.at("settings").at("model.placement") == Json("pre"));
  CHECK(first.at("seed") == Json(1));
  CHECK(first.at("val_loss").is_number());
  CHECK_FALSE(holds(lines.at(0), "seconds"));
  CHECK(lines_of(read_file(directory + "/timing.jsonl")).size() == 4);
  const std::string page = read_file(directory + "/report.html");
  CHECK(holds(page, "T1: A &lt;test&gt;"));
  CHECK(holds(page, "<td class=\"fails\">fails</td>"));
  CHECK_FALSE(holds(page, "http"));

  const Finished again = run_program({"sweep", file, "run.dir=" + directory, "train.steps=3"});
  CHECK(again.code == 1);
  CHECK(again.err.empty());
  CHECK(holds(again.out, "fails: Pre-LN is far ahead"));
  // Another setting is another point; the first stay.
  const Finished other = run_program({"sweep", file, "run.dir=" + directory, "train.steps=4", "--seeds", "1"});
  CHECK(holds(other.err, "2 of 2 points to measure"));
  CHECK(run_program({"report", directory, "--text"}).out == other.out.substr(0, other.out.find("\nreport: ")));
}

TEST_CASE("cli: a sweep killed and started again gives the same results", "[cli]") {
  const Workshop shop;
  const std::string file = shop.write("two.yaml", kSweep);
  const auto words = [&](const std::string& name) {
    return Strings{"sweep", file, "run.dir=" + shop.path(name), "train.steps=150", "checkpoint.every=20"};
  };
  CHECK(run_program(words("whole")).code == 1);
  for (const int signal : {SIGTERM, SIGKILL}) {
    const std::string name = signal == SIGTERM ? "ended" : "killed";
    Process process(words(name));
    for (int i = 0; i < 500 && !shop.exists(name + "/points"); ++i) usleep(10000);
    usleep(150000);
    process.send(signal);
    const Finished ended = process.wait();
    CHECK((ended.code == 143 || ended.code == -SIGKILL || ended.code == 1));
    const Finished resumed = run_program(words(name));
    INFO(resumed.err);
    CHECK(resumed.code == 1);
    CHECK(sorted_lines(shop.path(name + "/results.jsonl")) == sorted_lines(shop.path("whole/results.jsonl")));
  }
}

TEST_CASE("cli: the points of a sweep may start from runs that come before, also when it was killed there", "[cli]") {
  const Workshop shop;
  const std::string file = shop.write("after.yaml", R"(base: tiny.yaml
seeds: [1, 2]
before: {model.norm: layer, train.steps: 150, optimizer.lr: 1e-3}
grid:
  model.norm: [layer, rms]
  optimizer.lr: 1e-30
claims:
  - {claim: a, form: below, bound: 100, where: {model.norm: rms}}
)");
  const auto words = [&](const std::string& name) {
    return Strings{"sweep", file, "run.dir=" + shop.path(name), "train.steps=3", "checkpoint.every=20"};
  };
  const Finished whole = run_program(words("whole"));
  INFO(whole.err);
  REQUIRE(whole.code == 0);
  // A point begins where the run before it ended, and stays there at such a rate.
  Strings before, points;
  for (const auto& entry : std::filesystem::directory_iterator(shop.path("whole/before/points")))
    before.push_back(entry.path());
  for (const auto& entry : std::filesystem::directory_iterator(shop.path("whole/points")))
    points.push_back(entry.path());
  CHECK(before.size() == 2);
  CHECK(points.size() == 4);
  const auto eval_lines = [](const std::string& run) {
    Strings found;
    for (const std::string& line : lines_of(read_file(run + "/metrics.jsonl")))
      if (holds(line, "\"kind\":\"eval\"")) found.push_back(line);
    return found;
  };
  int same = 0;
  for (const std::string& run : points)
    for (const std::string& earlier : before)
      same +=
          parse_json(eval_lines(run).back(), run).at("loss") == parse_json(eval_lines(earlier).back(), run).at("loss");
  CHECK(same == 2);  // with the same norm, for each seed
  Process process(words("killed"));
  for (int i = 0; i < 500 && !shop.exists("killed/before/points"); ++i) usleep(10000);
  usleep(100000);
  process.send(SIGKILL);
  process.wait();
  CHECK(run_program(words("killed")).code == 0);
  CHECK(sorted_lines(shop.path("killed/results.jsonl")) == sorted_lines(shop.path("whole/results.jsonl")));
}

TEST_CASE("cli: claims over a key compare points though other keys' defaults follow from it", "[cli]") {
  const Workshop shop;  // schedule.min_lr follows from optimizer.lr, model.d_ff from model.d_model
  const std::string file = shop.write("derived.yaml", R"(base: tiny.yaml
grid:
  - {optimizer.lr: [1e-3, 1e-2]}
  - {model.d_model: 32}
claims:
  - {claim: rates, form: margin, by: -99, where: {optimizer.lr: 1e-3, model.d_model: 16}, than: {optimizer.lr: 1e-2}}
  - {claim: power, form: exponent, of: optimizer.lr, within: [-9, 9], where: {model.d_model: 16, optimizer.lr: [1e-3, 1e-2]}}
)");
  const Finished done = run_program({"sweep", file, "run.dir=" + shop.path("s")});
  INFO(done.out << done.err);
  CHECK(done.code == 0);
  CHECK(holds(done.out, "holds: rates"));
  CHECK(holds(done.out, "holds: power"));
}

TEST_CASE("cli: a sweep and its runs lie in its directory, whatever that is called", "[cli]") {
  const Workshop shop;
  shop.write("s.yaml", "base: tiny.yaml\n");
  for (const std::string name : {"h[1] x", "[y]", "null", "-z", "a=b", " lead", "\"q", "e\x1B#"}) {
    CAPTURE(name);
    const Finished done = run_program({"sweep", "s.yaml", "run.dir=" + name}, {.directory = shop.path("")});
    INFO(done.err);
    CHECK(done.code == 0);
    CHECK(shop.exists(name + "/report.html"));
    CHECK(lines_of(read_file(shop.path(name + "/results.jsonl"))).size() == 1);
  }
  CHECK(!shop.exists("lead"));
}

TEST_CASE("cli: what a sweep cannot do is told", "[cli]") {
  const Workshop shop;
  struct Mistake {
    std::string content;
    Strings parts;
  };
  for (const Mistake& mistake :
       std::vector<Mistake>{{"base: tiny.yaml\ngird: {}\n", {"gird", "grid"}},
                            {"base: tiny.yaml\ngrid: {model.nrom: [rms]}\n", {"sweep.yaml", "nrom"}},
                            {"base: tiny.yaml\ngrid: {model.norm: [rmz]}\n", {"sweep.yaml", "rmz", "rms"}},
                            {"base: none.yaml\n", {"none.yaml"}},
                            {"base: tiny.yaml\nclaims: [{claim: x, form: below}]\n", {"sweep.yaml:2", "bound"}},
                            {"base: tiny.yaml\nclaims: [{claim: x, form: belo, bound: 1}]\n", {"sweep.yaml:2", "belo"}},
                            {"base: tiny.yaml\ngrid: {model.n_heads: [3]}\n", {"sweep.yaml", "model.n_heads: 3"}}}) {
    const Finished done =
        run_program({"sweep", shop.write("sweep.yaml", mistake.content), "run.dir=" + shop.path("s")});
    INFO(mistake.content << done.err);
    CHECK(done.code == 2);
    CHECK(done.out.empty());
    for (const std::string& part : mistake.parts) {
      CAPTURE(part);
      CHECK(holds(done.err, part));
    }
  }
  const std::string file = shop.write("two.yaml", kSweep);
  CHECK(holds(run_program({"sweep", file, "model.placement=pre"}).err, "varies model.placement"));
  const Finished seeded = run_program({"sweep", file, "seed=1", "--dry-run"});
  CHECK(seeded.code == 2);
  CHECK(holds(seeded.err, "change its seeds: [...], or say how many with --seeds N"));
  CHECK(holds(run_program({"reproduce", "warmpu"}).err, "did you mean 'warmup'?"));
  CHECK(holds(run_program({"report", shop.path("nothing")}).err, "no directory of a run"));
}

TEST_CASE("cli: a run has a report, and two runs a difference", "[cli]") {
  const Workshop& shop = trained();
  const std::string page = read_file(shop.path("run/report.html"));
  for (const char* part :
       {"<svg", "validation", "Learning rate", "Token cosine", "model.norm", "prefers-color-scheme"}) {
    CAPTURE(part);
    CHECK(holds(page, part));
  }
  CHECK_FALSE(holds(page, "<script"));
  const Workshop other;
  other.train("rms", {"model.norm=rms"});
  const Finished diff = run_program({"diff", shop.path("run"), other.path("rms")});
  CHECK(diff.code == 0);
  CHECK(holds(diff.out, "model.norm"));
  CHECK(holds(diff.out, "they differ from step 1 on"));
  const Finished rates = other.train("rates", {"optimizer.lr=2e-3"});
  REQUIRE(rates.code == 0);
  // The first loss is that of equal weights; the line tells what is not equal.
  CHECK(holds(run_program({"diff", shop.path("run"), other.path("rates")}).out, "they differ from step 1 on: lr "));
  CHECK(holds(diff.out, "\ntraining loss: o "));
  CHECK(holds(diff.out, "\nvalidation loss: o "));
  const Finished same = run_program({"diff", shop.path("run"), shop.path("run")});
  CHECK(holds(same.out, "their 5 steps are the same"));
  CHECK(holds(same.out.substr(same.out.find("\ntraining loss: ")), "*\n"));  // both, at the last step
  CHECK(holds(run_program({"report", shop.path("run"), "--text"}).out, "block 0"));
  // Why the run ended as it did.
  const std::string reason = parse_json(read_file(shop.path("run/run.json")), "run.json").at("reason").string();
  REQUIRE(holds(reason, "the best validation loss, "));
  CHECK(holds(page, "<p>" + reason + "</p>"));
  CHECK(holds(run_program({"report", shop.path("run"), "--text"}).out, "\n" + reason + "\n\nloss: "));
  const std::string both = other.path("both.html");
  CHECK(run_program({"report", shop.path("run"), other.path("rms"), "--out", both}).code == 0);
  for (const char* part : {"What differs", "Validation loss", "Training loss"}) CHECK(holds(read_file(both), part));
}

TEST_CASE("cli: losses of different tokens are compared in bits per byte", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.train("chars", {"train.steps=2"}).code == 0);
  REQUIRE(shop.train("bytes", {"data.tokenizer=byte", "train.steps=2"}).code == 0);
  REQUIRE(shop.train("pairs", {"data.tokenizer=bpe", "data.vocab_size=300", "train.steps=2"}).code == 0);
  const auto last = [&](const std::string& run, const char* kind) {
    std::string found;
    for (const std::string& line : lines_of(shop.metrics(run)))
      if (holds(line, text("\"kind\":\"", kind, "\""))) found = line;
    return parse_json(found, run);
  };
  // A byte is a token, and a nat is 1 / ln 2 bits.
  const std::string of_bytes = fixed(last("bytes", "eval").at("loss").real() / std::log(2), 4);
  const std::string of_pairs = fixed(last("pairs", "eval").at("bits_per_byte").real(), 4);
  const Finished diff = run_program({"diff", shop.path("bytes"), shop.path("pairs")});
  INFO(diff.out << diff.err);
  CHECK(holds(diff.out, "validation loss, bits per byte"));
  CHECK(holds(diff.out, of_bytes));
  CHECK(holds(diff.out, of_pairs));
  CHECK(holds(diff.out, "\ntraining loss, bits per byte: o "));
  CHECK(holds(diff.out, "(losses in nats per token)"));
  const std::string out = shop.path("all.html");
  REQUIRE(run_program({"report", shop.path("chars"), shop.path("bytes"), shop.path("pairs"), "--out", out}).code == 0);
  const std::string page = read_file(out);
  CHECK(holds(page, "<th>validation loss, bits per byte</th>"));
  CHECK(holds(page, ">" + of_bytes + "</td>"));
  CHECK(holds(page, ">" + of_pairs + "</td>"));
  CHECK(holds(page, ">bits per byte</text>"));
  CHECK(holds(page, ">bits per byte, at the bytes per token of the validation text</text>"));
  CHECK_FALSE(holds(page, "nats per token"));
  CHECK_FALSE(holds(page, "class=\"level\""));  // entropies are those of tokens
  // A run that has not been evaluated.
  const std::string metrics = shop.metrics("pairs");
  std::string without;
  for (const std::string& line : lines_of(metrics))
    if (!holds(line, "\"kind\":\"eval\"")) without += line + "\n";
  write_file(shop.path("pairs/metrics.jsonl"), without);
  shop.remove_checksums("pairs");
  CHECK(holds(run_program({"diff", shop.path("bytes"), shop.path("pairs")}).out,
              "pairs: bits per byte are unknown before an evaluation"));
  REQUIRE(run_program({"report", shop.path("bytes"), shop.path("pairs"), "--out", shop.path("two.html")}).code == 0);
  CHECK(holds(read_file(shop.path("two.html")), ">pairs (no value)</text>"));
  CHECK(holds(read_file(shop.path("two.html")), ">unknown</td>"));
  // The same tokens stay what they are.
  REQUIRE(shop.train("same", {"model.norm=rms", "train.steps=2"}).code == 0);
  const Finished same = run_program({"diff", shop.path("chars"), shop.path("same")});
  CHECK(holds(same.out, fixed(last("chars", "eval").at("loss").real(), 4)));
  CHECK_FALSE(holds(same.out, "bits per byte"));
  // As many characters, but others; their text's bytes are not theirs alone.
  std::string latin, greek;
  for (int i = 0; i < 400; ++i) {
    latin += text(static_cast<char>('a' + i * i % 7), i % 9 == 8 ? "\n" : "");
    greek += text("\xCE", static_cast<char>('\xB1' + i * i % 7), i % 9 == 8 ? "\n" : "");
  }
  REQUIRE(shop.train("latin", {"train.steps=2", "data.source=" + shop.write("latin.txt", latin)}).code == 0);
  REQUIRE(shop.train("greek", {"train.steps=2", "data.source=" + shop.write("greek.txt", greek)}).code == 0);
  CHECK(shop.record("latin").at("vocab_size") == shop.record("greek").at("vocab_size"));
  CHECK(holds(run_program({"diff", shop.path("latin"), shop.path("greek")}).out, "validation loss, bits per byte"));
}

TEST_CASE("cli: numbers are shown as they are typed, and kept with every digit", "[cli]") {
  const Workshop shop;
  // 3e-3 / 10, the default of schedule.min_lr, has the double 0.00030000000000000003 as its neighbour.
  const std::string settings = "schedule.min_lr=0.00030000000000000003";
  REQUIRE(shop.train("run", {"optimizer.lr=3e-3", settings}).code == 0);
  REQUIRE(shop.train("other", {"optimizer.lr=2e-3", "schedule.min_lr=2e-4"}).code == 0);
  CHECK(holds(read_file(shop.path("run/config.yaml")), "min_lr: 0.00030000000000000003"));
  const std::string diff = run_program({"diff", shop.path("run"), shop.path("other")}).out;
  CHECK(holds(diff, "3e-04"));
  CHECK(holds(diff, "2e-04"));
  CHECK_FALSE(holds(diff, "0000000003"));
  const std::string page = read_file(shop.path("run/report.html"));
  CHECK(holds(page, ">3e-04</td>"));
  CHECK_FALSE(holds(page, "0000000003"));
  // Two that differ by their last digit stay apart.
  REQUIRE(shop.train("near", {"optimizer.lr=3e-3", "schedule.min_lr=3e-4"}).code == 0);
  CHECK(holds(run_program({"diff", shop.path("run"), shop.path("near")}).out, "0.00030000000000000003"));
  const std::string file = shop.write("rates.yaml", R"(base: tiny.yaml
grid: {optimizer.lr: [0.00030000000000000003, 1e-3]}
maps: [{title: rates, x: optimizer.lr, y: model.norm}]
claims: [{claim: a, form: below, bound: 100}]
)");
  const Finished done = run_program({"sweep", file, "run.dir=" + shop.path("s"), "--json"});
  REQUIRE(done.code == 0);
  CHECK(holds(done.out, "\"optimizer.lr\": 0.00030000000000000003"));
  CHECK(holds(read_file(shop.path("s/results.jsonl")), "\"optimizer.lr\":0.00030000000000000003"));
  CHECK(holds(done.out, "lr 3e-04: "));
  CHECK(holds(read_file(shop.path("s/report.html")), "lr 3e-04"));
  CHECK_FALSE(holds(read_file(shop.path("s/report.html")), "0000000003"));
}

TEST_CASE("cli: control characters in names of runs and data leave a page that XML allows", "[cli]") {
  const Workshop shop;
  const std::string odd = "\x01\x1B\xC2\x85<&>\"";
  std::string content;
  for (int i = 0; i < 100; ++i) content += text("line ", i, '\n');
  const std::string source = shop.write("text\xC2\x85<&>\"", content);
  REQUIRE(shop.train("a", {"data.source=" + source}).code == 0);
  std::filesystem::rename(shop.path("a"), shop.path("a" + odd));
  REQUIRE(run_program({"report", shop.path("a" + odd)}).code == 0);
  const std::string out = shop.path("both.html");
  const Finished done = run_program({"report", shop.path("a" + odd), trained().path("run"), "--out", out});
  INFO(done.err);
  REQUIRE(done.code == 0);
  const std::string bad = "\xEF\xBF\xBD";
  for (const std::string& page : {read_file(out), read_file(shop.path("a" + odd + "/report.html"))}) {
    CHECK(holds(page, "a" + bad + bad + bad + "&lt;&amp;&gt;&quot;"));
    CHECK(std::ranges::none_of(page, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }));
    CHECK_FALSE(holds(page, "\xC2\x85"));
  }
}

TEST_CASE("cli: the text of a sweep has its curves, its maps and how runs without a value ended", "[cli]") {
  const Workshop shop;
  const std::string file = shop.write("drawn.yaml", R"(title: drawn
base: tiny.yaml
grid: {model.placement: [post, pre], optimizer.lr: [1e-3, 1e8]}
maps:
  - {title: rates, x: optimizer.lr, y: model.placement}
  - {title: the same rate, x: optimizer.lr, y: model.placement, where: {optimizer.lr: 1e-3, model.placement: post}}
curves: [{title: by rate, x: optimizer.lr, log_x: true, by: [model.placement]}]
claims:
  - {claim: a, source: "Somebody 2001", form: below, bound: 100, where: {optimizer.lr: 1e-3}}
)");
  const Finished done = run_program({"sweep", file, "run.dir=" + shop.path("s"), "train.steps=60", "eval.every=20"});
  INFO(done.out << done.err);
  CHECK(done.code == 0);
  for (const char* part :
       {"\nvalidation loss (*: several)\n  o lr 0.001, post\n  x lr 1e+08, post\n",
        "\nrates (val_loss), across: optimizer.lr\n", "\nby rate (val_loss)\n  o post (1e+08: nonfinite)\n",
        "lr 0.001, pre, seed 1337; gradient norm of mlp.down", "block 0", "holds: a"}) {
    CAPTURE(part);
    CHECK(holds(done.out, part));
  }
  const std::string page = read_file(shop.path("s/report.html"));
  CHECK(holds(page, ">nonfinite</text>"));
  CHECK(holds(page, "post (1e+08: nonfinite)"));
  // Of the two values one has the first shade, the other the last; so in the map of one of them alone.
  const std::size_t second = page.find("the same rate");
  REQUIRE(second != std::string::npos);
  const std::string cell = page.substr(second, page.find("</figure>", second) - second);
  CHECK((holds(cell, "cell q0\"") || holds(cell, "cell q20\"")));
  CHECK(holds(page, "data-name=\"measured\""));
}

TEST_CASE("cli: a sweep of checks ends with its verdicts and files, as one of runs does", "[cli]") {
  const Workshop shop;
  const std::string file =
      shop.write("company.yaml",
                 "base: tiny.yaml\nmeasure: check\nseeds: [1]\n"
                 "grid: {model.norm: [layer, batch]}\nclaims:\n"
                 "- {claim: alone, form: range, value: other_samples.training.largest_change, "
                 "within: [0, 0], where: {model.norm: layer}}\n"
                 "- {claim: in company, form: above, value: other_samples.training.largest_change, "
                 "bound: 0, where: {model.norm: batch}}\n");
  const Finished done = run_program({"sweep", file, "run.dir=" + shop.path("s")});
  INFO(done.out << done.err);
  CHECK(done.code == 0);
  CHECK(holds(done.out, "holds: alone"));
  CHECK(holds(done.out, "holds: in company"));
  CHECK(lines_of(read_file(shop.path("s/results.jsonl"))).size() == 2);
  CHECK(lines_of(read_file(shop.path("s/timing.jsonl"))).size() == 2);
}

TEST_CASE("cli: what the pictures and tables of a sweep leave out is said", "[cli]") {
  const Workshop shop;
  const std::string file = shop.write("hidden.yaml", R"(base: tiny.yaml
seeds: [1, 2]
grid:
  - {model.placement: [post, pre]}
  - {seed: 3, optimizer.lr: 1e8, model.placement: post}
maps: [{title: over, x: seed, y: model.norm}]
curves: [{title: along, x: model.n_layers, by: [optimizer.lr]}]
claims:
  - {claim: a, form: below, bound: unigram, value: steps_to unigram + 9, where: {optimizer.lr: 1e-3}}
)");
  const Finished done = run_program({"sweep", file, "run.dir=" + shop.path("s"), "train.steps=60", "eval.every=20"});
  INFO(done.out << done.err);
  CHECK(holds(done.out, "\nover, mean over model.placement, optimizer.lr (val_loss)"));
  CHECK(holds(done.out, "\nalong, mean over model.placement (val_loss)"));
  const std::string page = read_file(shop.path("s/report.html"));
  CHECK(holds(page, "1e+08 (1: nonfinite)"));
  for (const std::string& line : lines_of(read_file(shop.path("s/timing.jsonl"))))
    CHECK(parse_json(line, "timing.jsonl").at("seconds").real() > 0);
}
