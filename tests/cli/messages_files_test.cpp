// The messages about files: configurations, texts, runs, checkpoints, sweeps; and how runs that fail end.
#include <filesystem>

#include "messages.h"
#include "normlab/run/checkpoint.h"

using namespace normlab;

namespace {

struct FileRow {
  std::string content, message;
};

// A run and what can be wrong with one: begun without a checkpoint, cut short, with one bit flipped.
const Workshop& damaged() {
  static const Workshop shop;
  static const bool made = [] {
    for (const Strings& more : {Strings{"run"}, {"batch", "model.norm=batch", "model.placement=post"}})
      check(shop.train(more[0], {more.begin() + 1, more.end()}).code == 0, "the run that other tests use failed");
    std::filesystem::create_directories(shop.path("begun/checkpoints"));
    shop.write("begun/config.yaml", read_file(shop.path("run/config.yaml")));
    for (const std::string name : {"cut", "flipped"}) {
      std::filesystem::copy(shop.path("run"), shop.path(name), std::filesystem::copy_options::recursive);
      std::string bytes = read_file(shop.checkpoint(name, "step-000005"));
      if (name == "cut") bytes.resize(bytes.size() / 2);
      if (name == "flipped") bytes[bytes.size() / 2] ^= 16;
      write_file(shop.checkpoint(name, "step-000005"), bytes);
    }
    std::filesystem::create_directory(shop.path("papers"));
    shop.write("papers/thesis.txt", "years of work");
    shop.write("empty.txt", "");
    shop.write("one.txt", "a");
    std::string greek;
    for (int i = 0; i < 40; ++i) greek += "ab\xCE\xA9 ";
    shop.write("greek.txt", greek);
    return true;
  }();
  (void)made;
  return shop;
}

}  // namespace

TEST_CASE("messages: a configuration file that is wrong is told with line and column", "[cli]") {
  const Workshop shop;
  const std::vector<FileRow> rows{
      {"model:\n  n-layers: 2\n", "@/c.yaml:2:3: the section model has no key 'n-layers'; did you mean 'n_layers'?"},
      {"model:\n  lr: 0.1\n", "@/c.yaml:2:3: the section model has no key 'lr'; it belongs elsewhere: optimizer.lr"},
      {"model:\n  norm:rms\n",
       "@/c.yaml:2:3: model: a section takes keys (such as model.KEY), not 'norm:rms'; a space is missing after the "
       "colon"},
      {"optimizer:\n  lr:0.1\n  eps: 1e-8\n", "@/c.yaml:2:3: a space is missing after the colon of 'lr:0.1'"},
      {"modle:\n  norm: rms\n", "@/c.yaml:1:1: the configuration has no key 'modle'; did you mean 'model'?"},
      {"model.norm: rms\n",
       "@/c.yaml:1:1: the configuration has no key 'model.norm'; in a file, write norm under model:"},
      {"model:\n  norm: rmz\n",
       "@/c.yaml:2:9: model.norm: 'rmz' is not one of layer rms scale group instance layer_seq batch batch_step power "
       "dyt none fixed; did you mean 'rms'?"},
      {"model:\n  d_model: 256\n  norm: rms\n  d_model: 1024\n",
       "@/c.yaml:4:3: the key 'd_model' is given twice: in line 2 and in line 4"},
      {"seed: 1\nmodel: {norm: rms}\nseed: 2\n",
       "@/c.yaml:3:1: the key 'seed' is given twice: in line 1 and in line 3"},
      {"optimizer:\n  lr: \"1e-4\"\n",
       "@/c.yaml:2:7: optimizer.lr: wants a number, not the quoted \"1e-4\"; drop the quotes"},
      {"model:\n  bias: off\n", "@/c.yaml:2:9: model.bias: wants true or false, not 'off'; write false"},
      {"model:\n\tbias: true\n", "@/c.yaml:2:1: tabs in the indentation are not supported; use spaces"},
      {"model: rms\n", "@/c.yaml:1:8: model: a section takes keys (such as model.KEY), not 'rms'"},
      {"- model\n", "@/c.yaml:1:1: a configuration takes keys ('key: value'), not a list"},
      {"model:\n  - norm\n", "@/c.yaml:2:3: model: a section takes keys (such as model.KEY), not a list"},
      {"rms\n", "@/c.yaml:1:1: a configuration takes keys ('key: value'), not 'rms'"},
      {"model: &m\n  norm: rms\n", "@/c.yaml:1:8: anchors (&) are not supported; quote a text that starts with &"},
      {"model: *m\n", "@/c.yaml:1:8: aliases (*) are not supported; quote a text that starts with *"},
      {"model:\n  norm: !!str rms\n", "@/c.yaml:2:9: tags (!) are not supported; quote a text that starts with !"},
      {"seed: 1\n---\nseed: 2\n", "@/c.yaml:2:1: several documents are not supported: '---'"},
      {"model:\n  <<: {norm: rms}\n", "@/c.yaml:2:3: merge keys (<<) are not supported; write the keys out"},
      {"model: {norm: rms\n", "@/c.yaml:1:8: this '{' is never closed by '}'"},
      {"model:\n  norm: 'rms\n", "@/c.yaml:2:9: the quoted text that starts here is not closed"},
      {"model:\n  norm: rms: x\n", "@/c.yaml:2:12: a second ': ' on this line; quote a value that holds ': '"},
      {"model:\n  norm: rms\n bias: true\n",
       "@/c.yaml:3:2: 'bias: true' stands in column 2, where column 1 is expected; entries of one mapping or list "
       "start in the same column; plain text over several lines is not supported: quote it"},
      {"optimizer:\n  grad_clip: -1\n", "@/c.yaml:2:14: optimizer.grad_clip: -1 is out of range; it takes at least 0"},
      {"model:\n  n_heads: 3\n  d_model: 16\n",
       "model.n_heads: 3 does not divide model.d_model, 16; each head has d_model / n_heads channels"},
      {"{\"model\": {\"norm\": 3}}\n",
       "@/c.yaml:1:20: model.norm: '3' is not one of layer rms scale group instance layer_seq batch batch_step power "
       "dyt none fixed"},
      {"seed: \xC3(", "@/c.yaml:1:7: the byte 0xC3 is not UTF-8"},
  };
  for (const FileRow& row : rows) {
    shop.write("c.yaml", row.content);
    check_mistake(shop, {"train", "@/c.yaml", "run.dir=@/none"}, {{}, row.message});
  }
  CHECK_FALSE(shop.exists("none"));
}

TEST_CASE("messages: runs and checkpoints", "[cli]") {
  const Workshop& shop = damaged();
  const std::string metrics = shop.metrics("run");
  check_mistakes(
      shop, {},
      {
          {{"train", "@/tiny.yaml", "run.dir=@/run"},
           "@/run: run.dir exists; give another one, or --force to replace the run in it"},
          {{"train", "@/tiny.yaml", "run.dir=@/papers"},
           "@/papers: run.dir exists; give another one, or --force to replace the run in it"},
          {{"train", "@/tiny.yaml", "run.dir=@/papers", "--force"},
           "@/papers: --force replaces only the directory of a run, and this one holds no run.json; give another "
           "run.dir"},
          {{"train", "@/tiny.yaml", "run.dir=@/tiny.yaml"},
           "@/tiny.yaml: run.dir exists; give another one, or --force to replace the run in it"},
          {{"train", "@/tiny.yaml", "run.dir=@/tiny.yaml", "--force"},
           "@/tiny.yaml: --force replaces only the directory of a run, and this one holds no run.json; give another "
           "run.dir"},
          {{"train", "@/tiny.yaml", "run.dir=@/tiny.yaml/x"},
           "@/tiny.yaml/x: the directory cannot be made below a file; give another run.dir"},
          {{"train", "--resume", "@/run", "model.norm=rms"},
           "--resume: model.norm cannot change from layer to rms; only train.steps, train.threads, train.time_limit, "
           "train.memory_check, "
           "log.*, eval.*, checkpoint.* and the place of the same text can. Start a new run instead"},
          {{"train", "--resume", "@/run", "seed=2"},
           "--resume: seed cannot change from 1337 to 2; only train.steps, train.threads, train.time_limit, "
           "train.memory_check, log.*, "
           "eval.*, checkpoint.* and the place of the same text can. Start a new run instead"},
          {{"train", "--resume", "@/run", "optimizer.lr=1"},
           "--resume: optimizer.lr cannot change from 0.001 to 1; only train.steps, train.threads, train.time_limit, "
           "train.memory_check, "
           "log.*, eval.*, checkpoint.* and the place of the same text can. Start a new run instead"},
          {{"train", "--resume", "@/run", "data.size=100"},
           "--resume: data.size cannot change from 20000 to 100; only train.steps, train.threads, train.time_limit, "
           "train.memory_check, "
           "log.*, eval.*, checkpoint.* and the place of the same text can. Start a new run instead"},
          {{"train", "--resume", "@/run", "train.batch_size=8"},
           "--resume: train.batch_size cannot change from 4 to 8; only train.steps, train.threads, train.time_limit, "
           "train.memory_check, "
           "log.*, eval.*, checkpoint.* and the place of the same text can. Start a new run instead"},
          {{"train", "--resume", "@/run", "train.steps=3"},
           "--resume: @/run/checkpoints/step-000005.safetensors is at step 5, beyond train.steps = 3; give a larger "
           "train.steps"},
          {{"train", "--resume", "@/run", "--stop-at=3"},
           "--stop-at 3: @/run/checkpoints/step-000005.safetensors is at step 5 already; give a later step"},
          {{"train", "--resume", "@/run", "train.stepz=3"},
           "command line: the section train has no key 'stepz'; did you mean 'steps'?"},
          {{"train", "--resume", "@/begun"},
           "@/begun: there is no checkpoint of the last steps in @/begun/checkpoints: the run ended before its first, "
           "or "
           "it was deleted. Start it again: normlab train @/begun/config.yaml run.dir=@/begun --force"},
          {{"train", "--resume", "@/cut"},
           "@/cut/checkpoints/step-000005.safetensors: <> ends at byte <> of the data, which has <>; the file is "
           "damaged or was cut short: take it from its source again"},
          {{"train", "--resume", "@/flipped"},
           "@/flipped/checkpoints/step-000005.safetensors: the checksum of its bytes is <>, and it should be <>; the "
           "file is damaged or was cut short: take it from its source again"},
          {{"eval", "@/cut"},
           "@/cut/checkpoints/step-000005.safetensors: <> ends at byte <> of the data, which has <>; the file is "
           "damaged or was cut short: take it from its source again"},
          {{"sample", "@/flipped"},
           "@/flipped/checkpoints/step-000005.safetensors: the checksum of its bytes is <>, and it should be <>; the "
           "file is damaged or was cut short: take it from its source again"},
          {{"sample", "@/begun"},
           "@/begun: there is no checkpoint in @/begun/checkpoints; name a checkpoint file, or a run directory that "
           "has one"},
          {{"sample", "@/papers/thesis.txt"},
           "@/papers/thesis.txt: the first 8 bytes say that the header has <> bytes, and at most 100000000 are "
           "allowed; is this a safetensors file? If so, it is damaged: take it from its source again"},
          {{"eval", "@/cut/checkpoints/step-000005.safetensors"},
           "@/cut/checkpoints/step-000005.safetensors: <> ends at byte <> of the data, which has <>; the file is "
           "damaged or was cut short: take it from its source again"},
          {{"inspect", "@/flipped"},
           "@/flipped/checkpoints/step-000005.safetensors: the checksum of its bytes is <>, and it should be <>; the "
           "file is damaged or was cut short: take it from its source again"},
          {{"export", "@/batch", "--to", "hf", "@/hf"},
           "export: this model is none that GPT-2 can express: model.norm is batch and must be layer; model.placement "
           "is post and must be pre. --to pytorch takes every model"},
          {{"verify", "@/none.safetensors"}, "cannot read @/none.safetensors: there is no such file; check the path"},
          {{"verify", "@/tiny.yaml"},
           "@/tiny.yaml: the first 8 bytes say that the header has <> bytes, and at most 100000000 are allowed; is "
           "this a safetensors file? If so, it is damaged: take it from its source again"},
          {{"eval", "@/run", "--data", "@/greek.txt"},
           "'@/greek.txt': 1 character is not among the 52 of the vocabulary: '\xCE\xA9' (U+03A9) 40 times; the first "
           "is "
           "at byte 2 (line 1, column 3); leave it out, or train with data.tokenizer=byte or bpe"},
          {{"eval", "@/run", "--data", "@/empty.txt"}, "'@/empty.txt': is empty; give a text to learn from"},
          {{"eval", "@/run", "--data", "@/one.txt"},
           "'@/one.txt': there are 1 tokens and no target among them; give more text"},
      });
  CHECK(shop.metrics("run") == metrics);
  CHECK(read_file(shop.path("papers/thesis.txt")) == "years of work");
  CHECK_FALSE(shop.exists("hf"));
}

TEST_CASE("messages: sweeps", "[cli]") {
  const Workshop& shop = trained();
  const std::vector<FileRow> rows{
      {"{}\n", "@/s.yaml: a sweep has base, grid, seeds and claims, and this file has no keys"},
      {"", "@/s.yaml: a sweep has base, grid, seeds and claims, and this file has no keys"},
      {"base: tiny.yaml\ngird: {}\n", "@/s.yaml:2:1: a sweep has no key 'gird'; did you mean 'grid'?"},
      {"base: tiny.yaml\ngrid: {model.nrom: [rms]}\n",
       "@/s.yaml:2:21: the section model has no key 'nrom'; did you mean 'norm'?"},
      {"base: tiny.yaml\ngrid: {model.norm: [rmz]}\n",
       "@/s.yaml:2:21: model.norm: 'rmz' is not one of layer rms scale group instance layer_seq batch batch_step power "
       "dyt none fixed; did you mean 'rms'?"},
      {"base: none.yaml\n", "cannot read @/none.yaml: there is no such file; check the path"},
      {"base: tiny.yaml\nmeasure: tran\n",
       "@/s.yaml:2:10: measure: 'tran' is not one of train inspect check shards curvature bench; did you mean "
       "'train'?"},
      {"base: tiny.yaml\nseeds: []\n", "@/s.yaml:2:1: seeds is empty; give one or more, or leave it out"},
      {"base: tiny.yaml\nseeds: [a]\n", "@/s.yaml:2:9: seeds[0]: wants an integer, not 'a'"},
      {"base: tiny.yaml\nclaims: [{claim: x, form: below}]\n", "@/s.yaml:2:10: below and above need `bound`"},
      {"base: tiny.yaml\nclaims: [{claim: x, form: belo, bound: 1}]\n",
       "@/s.yaml:2:27: form: 'belo' is not one of below above margin range exponent outcome equal; did you mean "
       "'below'?"},
      {"base: tiny.yaml\nclaims: [{claim: x, form: below, bound: 1, over: some}]\n",
       "@/s.yaml:2:50: over: 'some' is not one of every_seed mean"},
      {"base: tiny.yaml\nclaims: [{claim: x, form: below, bound: 1, where: {model.norm: rms}}]\n",
       "@/s.yaml:2:44: claim 'x': no point of the sweep meets its `where`; its values are those of the grid"},
      {"base: tiny.yaml\nclaims: [{claim: x, form: below, bound: unigramm}]\n",
       "@/s.yaml:2:34: 'unigramm' is no bound; a number is, or one of unigram, bigram, floor, ln_vocab, followed by "
       "'+ 0.1' or '- 0.1'"},
      {"base: tiny.yaml\nclaims: [{claim: x, form: outcome, is: traind}]\n",
       "@/s.yaml:2:36: `is` is trained, stuck, diverged or nonfinite, not 'traind'"},
      {"base: tiny.yaml\nclaims: [{claim: x, form: exponent, within: [0, 1], of: optimizer.lrr}]\n",
       "@/s.yaml:2:53: `of` is a key of a run, not 'optimizer.lrr'; did you mean 'optimizer.lr'?"},
      {"base: tiny.yaml\nclaims: [{claim: x, form: exponent, within: [0, 1], of: optimizer.lr}]\n",
       "@/s.yaml:2:53: claim 'x': the sweep does not vary optimizer.lr, whose power is asked for"},
      {"base: tiny.yaml\ngrid: {model.norm: [rms, layer]}\n"
       "claims: [{claim: x, form: exponent, within: [0, 1], of: model.norm}]\n",
       "@/s.yaml:3:53: claim 'x': model.norm is layer, no number"},
      {"base: tiny.yaml\nclaims: [{claim: x, form: margin, by: 0, than: {model.norm: []}}]\n",
       "@/s.yaml:2:42: `than` gives model.norm one value, which the other point has"},
      {"base: tiny.yaml\nclaims: [{claim: x, form: margin, by: 0, than: {model.norm: dyt}}]\n",
       "@/s.yaml:2:42: claim 'x': no point of the sweep differs from `where` as `than` says, and in nothing else"},
      {"base: tiny.yaml\nmaps: [{x: optimizer.lrr, y: model.norm}]\n",
       "@/s.yaml:2:9: `x` is a key of a run, not 'optimizer.lrr'; did you mean 'optimizer.lr'?"},
      {"base: tiny.yaml\nmaps: [{x: optimizer.lr}]\n",
       "@/s.yaml:2:8: `y` is a key of a run, not ''; `normlab train --help-table` lists them"},
      {"base: tiny.yaml\ncurves: [{x: optimizer.lr, by: [model.norn]}]\n",
       "@/s.yaml:2:28: `by` is a key of a run, not 'model.norn'; did you mean 'model.norm'?"},
      {"base: tiny.yaml\ngrid: {model.n_heads: [3]}\n",
       "@/s.yaml: the point with model.n_heads: 3: model.n_heads: 3 does not divide model.d_model, 16; each head has "
       "d_model / n_heads channels"},
  };
  for (const FileRow& row : rows) {
    shop.write("s.yaml", row.content);
    check_mistake(shop, {"sweep", "@/s.yaml", "run.dir=@/s"}, {{}, row.message});
  }
  CHECK_FALSE(shop.exists("s"));

  shop.write("s.yaml", "base: tiny.yaml\n");
  check_mistake(shop, {},
                {{"sweep", "@/s.yaml", "run.dir=@/run"},
                 "@/run: this is the directory of a run; give the sweep another run.dir"});
  shop.write("s.yaml", "base: tiny.yaml\ngrid: {model.norm: [rms, layer]}\n");
  check_mistake(
      shop, {},
      {{"sweep", "@/s.yaml", "model.norm=rms"}, "model.norm=rms: @/s.yaml varies model.norm; change its grid instead"});
  check_mistake(shop, {},
                {{"sweep", "@/tiny.yaml"},
                 "@/tiny.yaml:1:1: a sweep has no key 'data'; it has base, grid, claims, maps, curves, before, id, "
                 "title, source, about, measure, seeds, keep_checkpoints"});
}

TEST_CASE("messages: a second process in a run's directory is refused until the first has ended, however it ends",
          "[cli]") {
  const Workshop shop;
  {
    Process process(shop.training("run", {"train.steps=100000", "checkpoint.every=1", "eval.every=100000",
                                          "log.layers_every=0", "checkpoint.keep=2"}));
    for (int i = 0; i < 2000 && !shop.exists("run/checkpoints/step-000002.safetensors"); ++i) usleep(5000);
    const std::string taken =
        "@/run: another process trains in this directory; wait for its end, or end it, or give "
        "another run.dir";
    check_mistakes(shop, {"train"},
                   {{{"--resume", "@/run"}, taken}, {{"@/tiny.yaml", "run.dir=@/run", "--force"}, taken}});
    process.send(SIGKILL);
    CHECK(process.wait().code == -SIGKILL);
  }
  const std::int64_t step = Checkpoint(checkpoint_path(shop.path("run"))).state().step;
  CHECK(run_program({"train", "--resume", shop.path("run"), text("--stop-at=", step + 1)}).code == 0);
}

TEST_CASE("messages: how runs end that fail, and what is warned of", "[cli]") {
  struct End {
    Strings settings;
    int code;
    Strings parts;  // of what is printed on either output
  };
  const std::string advice =
      "; try a lower optimizer.lr, a longer schedule.warmup_steps, or optimizer.grad_clip above 0\n";
  const Strings wild{"optimizer.name=sgd", "optimizer.grad_clip=0", "schedule.warmup_steps=0"}, one{"train.steps=1"};
  const std::vector<End> ends{
      {{"model.norm_gain=1e38"},
       3,
       {"normlab: nonfinite: step 1: the first value that is not finite appeared in the ", "begin at training tokens ",
        "; no update came before it; the model was not sound before any update: look at model.norm_gain, "
        "model.norm_eps, model.embed_std and model.from\n"}},
      {joined(wild, {"optimizer.lr=1e30", "train.steps=50"}),
       3,
       {"normlab: nonfinite: step ", "op ", ", tensor [", "; the gradient norm of the step before was ", advice}},
      {joined(wild, {"optimizer.lr=1e39", "train.steps=1"}),
       3,
       {"normlab: nonfinite: update 1 left parameters that are not finite, first in ", ", its learning rate 1e+39)",
        advice}},
      {{"optimizer.name=sgd", "optimizer.lr=10", "schedule.warmup_steps=0", "train.steps=60"},
       1,
       {"normlab: diverged: the training loss lay above 2 ln V + 2 = ", " on 20 steps running, the last of them step ",
        advice}},
      {one,
       0,
       {"outcome: stuck after 1 steps: the best validation loss, ", ", the mean of the unigram and bigram entropies",
        "warning: schedule.warmup_steps = 100 is longer than the run"}},
      {joined(one, {"optimizer.lr=2"}),
       0,
       {"warning: optimizer.lr = 2 is far above what adamw trains with (1e-4 to 1e-2)"}},
      {joined(one, {"model.init=xavier"}),
       0,
       {"warning: the loss before the first update is ", ", ln V is ", ": the initial logits are not near 0"}},
      {joined(one, {"model.norm_sync=true"}),
       0,
       {"note: model.norm_sync changes nothing: model.norm layer takes no batch statistics"}},
      {joined(one, {"eval.statistics=batch"}),
       0,
       {"note: eval.statistics changes nothing: model.norm layer has no running statistics"}},
      {joined(one, {"model.placement=none"}), 0, {"note: model.norm changes nothing: model.placement is none"}},
      {joined(one, {"model.norm=none"}), 0, {"note: model.placement changes nothing: model.norm is none"}},
      {joined(one, {"model.norm=batch", "train.grad_accumulation=2"}),
       0,
       {"note: with model.norm batch a position sees later positions and other samples in training",
        "note: no gradient noise scale is measured: batch statistics tie the samples of a micro-batch together"}},
      {joined(one, {"run.dir=/proc/none"}),
       4,
       {"normlab: /proc/none",
        ": the directory cannot be made: ", "; give another run.dir, or run where you may write"}},
  };
  const Workshop shop;
  for (const End& end : ends) {
    const Finished done = shop.train("run", joined({"--force"}, end.settings));
    INFO(join(end.settings, " ") << '\n' << done.out << done.err);
    CHECK(done.code == end.code);
    for (const std::string& part : end.parts) {
      CAPTURE(part);
      CHECK(holds(done.out + done.err, part));
    }
  }
  const Finished full = run_program({"data", "tales", "/dev/full"});
  CHECK(full.code == 4);
  CHECK(full.err ==
        "normlab: cannot write /dev/full: No space left on device; free some space or write to another "
        "disk, then repeat\n");
}
