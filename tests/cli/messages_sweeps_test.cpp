// What is wrong with a sweep's claims and pictures, told before the first run or after it.
#include <filesystem>

#include "catch.h"
#include "messages.h"

using namespace normlab;

namespace {

struct Row {
  std::string lines;  // of the file, after `base: tiny.yaml`
  std::string message;
};

}  // namespace

TEST_CASE("messages: claims, maps and curves that no measurement can answer", "[cli]") {
  const Workshop& shop = trained();
  const std::vector<Row> before{
      {"claims: [{claim: x, form: below, bond: 1}]\n",
       "@/s.yaml:2:34: a claim has no key 'bond'; did you mean 'bound'?"},
      {"claims: [x]\n",
       "@/s.yaml:2:10: a claim takes keys ('key: value'); it has where, than, claim, source, form, value, bound, by, "
       "times, within, of, is, tolerance, standard_errors, over"},
      {"claims: [{claim: x, form: below, bound: 1, by: 2}]\n",
       "@/s.yaml:2:44: a claim of form below does not read `by`; it has bound"},
      {"claims: [{claim: x, form: outcome, than: {model.norm: rms}}]\n",
       "@/s.yaml:2:36: a claim of form outcome does not read `than`; it has is"},
      {"claims: [{claim: x, form: margin, by: 1, times: 2, than: {model.norm: rms}}]\n",
       "@/s.yaml:2:42: `by` and `times` do not go together; give one of them"},
      {"claims: [{claim: x, form: below, bound: 1, value: val_los}]\n",
       "@/s.yaml:2:44: claim 'x': 'val_los' is no value of a run; val_loss, eval.loss@200 and layers.token_cosine.-1 "
       "are"},
      {"claims: [{claim: x, form: below, bound: 1, value: layer.token_cosine.-1}]\n",
       "@/s.yaml:2:44: claim 'x': 'layer.token_cosine.-1': a run has no lines of kind 'layer'; did you mean 'layers'?"},
      {"claims: [{claim: x, form: below, bound: 1, value: eval.loss@6}]\n",
       "@/s.yaml:2:44: claim 'x': 'eval.loss@6': the run has 5 steps"},
      {"claims: [{claim: x, form: below, bound: 1, value: steps_to bigramm}]\n",
       "@/s.yaml:2:44: claim 'x': 'bigramm' is no bound; a number is, or one of unigram, bigram, floor, ln_vocab, "
       "followed by '+ 0.1' or '- 0.1'"},
      {"maps: [{title: m, x: optimizer.lr, y: model.norm, z: seed}]\n",
       "@/s.yaml:2:51: a map has no key 'z'; it has where, title, x, y, value, log"},
      {"maps: [{title: m, x: optimizer.lr, y: model.norm, value: vloss}]\n",
       "@/s.yaml:2:51: map 'm': 'vloss' is no value of a run; val_loss, eval.loss@200 and layers.token_cosine.-1 are"},
      {"maps: [{title: m, x: optimizer.lr, y: model.norm, where: {model.norm: rms}}]\n",
       "@/s.yaml:2:51: map 'm': no point of the sweep meets its `where`; its values are those of the grid"},
      {"curves: [{title: c, x: optimizer.lr, where: {model.norm: rms}}]\n",
       "@/s.yaml:2:38: curve 'c': no point of the sweep meets its `where`; its values are those of the grid"},
      {"grid: {run.dir: [a, b]}\n", "@/s.yaml:2:8: the points of a sweep lie in its own directory; leave run.dir out"},
      {"grid: {optimizer.lr: [1e-3, 0.001]}\n", "@/s.yaml:2:8: optimizer.lr has the value 0.001 twice"},
      {"seeds: [1, 2, 1]\n", "@/s.yaml:2:1: seeds has a value twice"},
      {"grid: {data.source: [nowhere.txt]}\n",
       "data.source: 'nowhere.txt' is neither a file nor one of the built-in corpora tales markov copy brackets"},
      {"grid: {model.norm: [rms, layer]}\ncurves: [{title: c, x: model.norm}]\n",
       "@/s.yaml:3:21: curve 'c': model.norm is rms, no number; a map has any values along its axes"},
  };
  for (const Row& row : before) {
    shop.write("s.yaml", "base: tiny.yaml\n" + row.lines);
    check_mistake(shop, {"sweep", "@/s.yaml", "run.dir=@/s"}, {{}, row.message});
  }
  CHECK_FALSE(shop.exists("s"));
}

TEST_CASE("messages: a value that no run has ends a sweep at its first point", "[cli]") {
  const Workshop shop;
  const auto ends = [&](const std::string& lines) {
    const std::string file = shop.write("s.yaml", "base: tiny.yaml\nseeds: [1, 2, 3, 4]\n" + lines);
    Finished done = run_program({"sweep", file, "run.dir=" + shop.path("s"), "train.threads=2"});
    CHECK(done.code == 2);
    CHECK(done.out.empty());
    CHECK_FALSE(holds(done.err, "2/4 "));
    std::filesystem::remove_all(shop.path("s"));
    return done.err;
  };
  CHECK(holds(ends("claims: [{claim: x, form: below, bound: 1, value: layers.token_cosine.-1@3}]\n"),
              "there is no value 'layers.token_cosine.-1@3'; the lines of kind layers are of steps 0 ("));
  CHECK(holds(ends("claims: [{claim: x, form: below, bound: 1, value: layers.token_cosine.7@0}]\n"),
              "there is no value 'layers.token_cosine.7@0'; layers.token_cosine has no entry 7 ("));
  CHECK(
      holds(ends("claims: [{claim: x, form: below, bound: 1, value: layers.tokn_cosine.-1@0}]\n"),
            "s.yaml: claim 'x': there is no value 'layers.tokn_cosine.-1@0'; did you mean 'layers.token_cosine.-1'?"));
  CHECK(holds(ends("measure: check\nclaims: [{claim: x, form: below, bound: 1, value: nothing}]\n"),
              "s.yaml: claim 'x': there is no value 'nothing'"));
  CHECK(holds(ends("curves: [{title: c, x: optimizer.lr, value: eval.los}]\n"),
              "s.yaml: curve 'c': there is no value 'eval.los'; did you mean 'eval.loss'?"));
  shop.write("text.txt", std::string(3000, 'a') + std::string(3000, 'b'));
  CHECK(holds(ends("grid: {data.source: [" + shop.path("text.txt") +
                   "]}\nclaims: [{claim: x, form: below, bound: floor + 1}]\n"),
              "s.yaml: claim 'x': 'floor + 1' is not known for this data"));
}

TEST_CASE("messages: a sweep leaves the directory of another alone", "[cli]") {
  const Workshop shop;
  const std::string one = shop.write("one.yaml", "base: tiny.yaml\n"),
                    two = shop.write("two.yaml", "base: tiny.yaml\n");
  CHECK(run_program({"sweep", one, "run.dir=" + shop.path("s")}).code == 0);
  const std::string report = read_file(shop.path("s/report.html"));
  check_mistake(shop, {},
                {{"sweep", "@/two.yaml", "run.dir=@/s"},
                 "@/s: this is the directory of the sweep @/one.yaml; give @/two.yaml another with run.dir=DIR"});
  CHECK(read_file(shop.path("s/report.html")) == report);
  CHECK(run_program({"sweep", one, "run.dir=" + shop.path("s")}).code == 0);
}
