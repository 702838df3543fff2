// The messages about a run's own files that were damaged or edited; and how what steers a terminal is shown.
#include "messages.h"
#include "normlab/base/utf8.h"
#include "normlab/formats/safetensors.h"

using namespace normlab;

namespace {

// A copy of trained()'s run with one file changed.
void damage(const Workshop& shop, const std::string& file, const std::string& content) {
  std::filesystem::remove_all(shop.path("run"));
  std::filesystem::copy(trained().path("run"), shop.path("run"), std::filesystem::copy_options::recursive);
  shop.write("run/" + file, content);
}

}  // namespace

TEST_CASE("messages: a damaged run.json or config.yaml is named, with what to do", "[cli]") {
  const Workshop shop;
  const std::string record =
      "@/run/run.json: outcome or parameters are missing, which that of a run has; it is damaged; normlab train "
      "--resume @/run writes it again";
  for (const std::string content : {"{}", "[]", "{\"outcome\": 3, \"parameters\": 3}", "{\"outcome\": \"trained\"}"}) {
    damage(shop, "run.json", content);
    check_mistakes(shop, {}, {{{"report", "@/run"}, record}, {{"diff", "@/run", "@/run"}, record}});
  }
  CHECK(shop.train("other").code == 0);
  CHECK(run_program({"train", "--resume", shop.path("run")}).code == 0);
  CHECK(run_program({"report", shop.path("run")}).code == 0);

  const std::string empty =
      "@/run/config.yaml: holds no key, and that of a run has every one: it is damaged. Remove it, and "
      "normlab train --resume writes it again from the run's checkpoint";
  const std::string misfit =
      "@/run/config.yaml: model.n_heads: 3 does not divide model.d_model, 128; each head has d_model / n_heads "
      "channels";
  for (const auto& [content, message] :
       {std::pair<std::string, std::string>{"", empty}, {"# nothing\n", empty}, {"model: {n_heads: 3}\n", misfit}}) {
    damage(shop, "config.yaml", content);
    check_mistakes(shop, {},
                   {{{"report", "@/run"}, message},
                    {{"diff", "@/other", "@/run"}, message},
                    {{"train", "--resume", "@/run"}, message}});
  }
  std::string cut = read_file(trained().path("run/config.yaml"));
  damage(shop, "config.yaml", cut.erase(cut.find("  size: 20000\n"), 14));
  check_mistake(shop, {},
                {{"train", "--resume", "@/run", "model.norm=rms"},
                 "@/run/config.yaml: data.size cannot change from 20000 to 1000000; only train.steps, train.threads, "
                 "train.time_limit, train.memory_check, log.*, eval.*, checkpoint.* and the place of the same text "
                 "can. Start a new run instead"});
}

TEST_CASE("messages: a line of a log that cannot be read is told by its number, and how to go on without it", "[cli]") {
  const Workshop shop;
  const std::string metrics = trained().metrics("run"), timing = read_file(trained().path("run/timing.jsonl"));
  const std::string advice = "; put the line back as it was, or delete the file to go on without it";
  for (const auto& [line, what] : {std::pair<std::string, std::string>{"x", ":1:1: expected a value, found 'x'"},
                                   {"{}", ": a line of a log is an object with a step"},
                                   {"{\"step\":1.5,\"kind\":\"train\"}", ": a line of a log is an object with a step"},
                                   {"{\"step\":6,\"kind\":3}", ": a line of a log is an object with a step"}}) {
    damage(shop, "metrics.jsonl", line + "\n" + metrics);
    const std::string told = "@/run/metrics.jsonl:1" + what + advice;
    check_mistakes(shop, {},
                   {{{"train", "--resume", "@/run"}, told},
                    {{"report", "@/run"}, told},
                    {{"diff", "@/run", "@/run"}, told},
                    {{"export", "@/run", "--to", "csv", "@/x.csv"}, told}});
    damage(shop, "timing.jsonl", timing + line + "\n");
    check_mistake(shop, {}, {{"train", "--resume", "@/run"}, "@/run/timing.jsonl:3" + what + advice});
  }
  damage(shop, "metrics.jsonl", "{\"step\":1}\n");
  check_mistake(shop, {}, {{"report", "@/run"}, "@/run/metrics.jsonl:1: a line of metrics has a kind" + advice});

  // Valid lines that are not those that were written.
  Strings lines = lines_of(metrics);
  const std::string whole = lines.at(2), crc = whole.substr(whole.size() - 10);
  std::string other = whole;
  other[whole.find("\"loss\":") + 7] ^= 1;
  lines[2] = other;
  damage(shop, "metrics.jsonl", join(lines, "\n") + "\n");
  const auto check_readers = [&](const std::string& told) {
    check_mistakes(shop, {},
                   {{{"train", "--resume", "@/run"}, told},
                    {{"report", "@/run"}, told},
                    {{"diff", "@/run", "@/run"}, told},
                    {{"export", "@/run", "--to", "csv", "@/x.csv"}, told}});
  };
  const Finished done = run_program({"report", shop.path("run")});
  CHECK(done.code == 2);
  CHECK_THAT(done.err, ContainsSubstring("metrics.jsonl:3: this line was damaged or edited: it ends in " + crc +
                                         ", and by its checksum it should in "));
  lines[2] = R"({"step":2,"kind":"train"})";
  damage(shop, "metrics.jsonl", join(lines, "\n") + "\n");
  check_readers("@/run/metrics.jsonl:3: this line lacks its checksum, and others have theirs: it was edited" + advice);
  damage(shop, "metrics.jsonl", metrics.substr(0, metrics.size() - 1) + "?");
  check_mistake(shop, {},
                {{"report", "@/run"},
                 text("@/run/metrics.jsonl:", std::ssize(lines),
                      ": this line was damaged: its line break is another character", advice)});
}

TEST_CASE("messages: where only the best checkpoint is left, it is named", "[cli]") {
  const Workshop shop;
  damage(shop, "x", "");
  std::filesystem::remove(shop.checkpoint("run", "step-000005"));
  for (const char* command : {"sample", "eval", "inspect", "check"})
    check_mistake(shop, {command},
                  {{"@/run"},
                   "@/run: there is no checkpoint of the last steps in @/run/checkpoints; name the one that is there, "
                   "@/run/checkpoints/best.safetensors"});
}

TEST_CASE("messages: a name that is too long is the user's to change", "[cli]") {
  const Workshop shop;
  const std::string name = "@/" + std::string(300, 'a');
  check_mistakes(shop, {},
                 {{{"train", "@/tiny.yaml", "run.dir=" + name}, name + ": File name too long; give a shorter name"},
                  {{"sample", name}, name + ": File name too long; give a shorter name"},
                  {{"export", in_workshop(trained(), "@/run"), "--to", "pytorch", name},
                   "cannot write " + name +
                       "/model.safetensors: the name is too long for the file system; choose a shorter one"}});
}

TEST_CASE("messages: what steers a terminal is shown escaped, and letters as they are", "[cli]") {
  CHECK(printable("\xC3\xBC \xF0\x9F\x98\x80\n") == "\xC3\xBC \xF0\x9F\x98\x80\n");
  CHECK(printable("a\rb\t\x1B[31m\x7F\xC2\x9B\xFF\xE2\x82") == "a\\rb\\t\\x1B[31m\\x7F\\xC2\\x9B\\xFF\\xE2\\x82");
  const Workshop shop;
  check_mistake(shop, {},
                {{"train", "@/no\r\x1B[31m\xC2\x9B\xC3\xBC.yaml"},
                 "cannot read @/no\\r\\x1B[31m\\xC2\\x9B\xC3\xBC.yaml: there is no such file; check the path"});
  // The run's name is the file's.
  const std::string config = shop.write("t\x1B[31m.yaml", kTinyConfig);
  const Finished done = run_program({"train", config}, {.directory = shop.path("")});
  INFO(done.out << done.err);
  CHECK(done.code == 0);
  CHECK(holds(done.out, "run: runs/t\\x1B[31m"));
  CHECK_FALSE(holds(done.out + done.err, "\x1B"));
}

TEST_CASE("messages: a checkpoint with a right checksum and wrong content is named, with the part", "[cli]") {
  const Workshop shop;
  const Safetensors good = Safetensors::read(trained().checkpoint("run", "step-000005"), Checksum::required);
  const std::string path = shop.path("forged.safetensors");
  const auto forged = [&](const std::string& part, const std::string& from, const std::string& to) {
    std::map<std::string, std::string> metadata;
    for (const char* name : {"config", "tokenizer", "step", "state", "data_hash"})
      metadata[name] = good.metadata_at(name);
    std::string& content = metadata.at(part);
    REQUIRE(content.find(from) != std::string::npos);
    content.replace(content.find(from), from.size(), to);
    write_checksummed(path, {metadata.begin(), metadata.end()}, good.tensors());
  };
  const auto refused = [&](const std::string& what) {
    for (const Strings& words : {Strings{"eval", path}, {"sample", path}, {"inspect", path}}) {
      const Finished done = run_program(words);
      INFO(done.err);
      CHECK(done.code == 2);
      CHECK(done.out.empty());
      CHECK_THAT(done.err, ContainsSubstring(path + what));
    }
  };
  forged("config", "n_heads: 2", "n_heads: 3");
  refused(" (config): model.n_heads: 3 does not divide");
  forged("state", "\"diverging_steps\":0", "\"diverging_steps\":\"x\"");
  refused(" (state): ");
  forged("tokenizer", "\"", "?");
  refused(" (tokenizer): ");

  forged("step", "5", "5");
  CHECK(run_program({"eval", path}).code == 0);
  std::vector<StoredTensor> tensors = good.tensors();
  const std::string nans(tensors.at(0).bytes.size(), '\xFF');
  tensors[0].bytes = nans;
  write_checksummed(path,
                    {{"config", good.metadata_at("config")},
                     {"tokenizer", good.metadata_at("tokenizer")},
                     {"step", "5"},
                     {"state", good.metadata_at("state")},
                     {"data_hash", good.metadata_at("data_hash")}},
                    tensors);
  refused(": tensor '" + tensors[0].name + "' holds a value that is not finite; take another checkpoint");
}

TEST_CASE("messages: texts that the system cannot use, and links to nothing", "[cli]") {
  const Workshop shop;
  shop.write("nul.yaml", "data: {source: \"a\\0b\"}\n");
  shop.write("empty.yaml", "run: {dir: \"\"}\n");
  shop.write("run.yaml", "run: {dir: \"a\\0b\"}\n");
  std::filesystem::create_symlink("nothing", shop.path("link"));
  check_mistakes(
      shop, {},
      {{{"train", "@/nul.yaml", "run.dir=@/r"},
        "@/nul.yaml:1:16: data.source: holds a NUL character, where a text ends for the system; leave it out"},
       {{"train", "@/run.yaml"},
        "@/run.yaml:1:12: run.dir: holds a NUL character, where a text ends for the system; leave it out"},
       {{"train", "@/empty.yaml"}, "run.dir: '' names no directory; give one, or leave run.dir out"},
       {{"data", "tales", "@/link"},
        "data: @/link is a link to nothing, and is kept; name another file, or delete it "
        "first"}});
  CHECK(std::filesystem::is_symlink(shop.path("link")));
}
