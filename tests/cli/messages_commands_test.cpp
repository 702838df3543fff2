// The messages about words of the command line: commands, options, and what they take. A table of cases, longer than
// the rule for that reason.
#include "messages.h"

using namespace normlab;

TEST_CASE("messages: a wrong command, option or name, of each command", "[cli]") {
  const Workshop& shop = trained();
  shop.write("words.gz", "\x1F\x8B\x08");
  check_mistakes(
      shop, {},
      {
          {{"trian"}, "there is no command 'trian'; did you mean 'train'? (normlab --help lists the commands)"},
          {{"xyzzy"}, "there is no command 'xyzzy' (normlab --help lists the commands)"},
          {{"--frobnicate"}, "there is no command '--frobnicate' (normlab --help lists the commands)"},
          {{"train"},
           "train: CONFIG is missing; usage: normlab train CONFIG [key=value ...]  |  --resume RUN [key=value ...]"},
          {{"train", "@/tiny.yaml", "@/tiny.yaml"},
           "train: one CONFIG is expected, and there is '@/tiny.yaml' too; usage: normlab train CONFIG [key=value ...] "
           " |  --resume RUN [key=value ...]"},
          {{"train", "@/tiny.yaml", "--stopat", "3"},
           "train: there is no option --stopat; did you mean '--stop-at'? (normlab train --help lists them)"},
          {{"train", "@/tiny.yaml", "--train.steps", "5"},
           "train: there is no option --train.steps; a setting is written train.steps=5 (normlab train --help lists "
           "them)"},
          {{"train", "@/tiny.yaml", "--lr", "3e-4"},
           "train: there is no option --lr; a setting is written optimizer.lr=3e-4 (normlab train --help lists them)"},
          {{"train", "@/tiny.yaml", "--num-epochs=5"},
           "train: there is no option --num-epochs; here it is train.steps (there are no epochs; one is about tokens "
           "to "
           "train on / (train.batch_size x train.grad_accumulation x model.context_length) steps) (normlab train "
           "--help "
           "lists them)"},
          {{"train", "@/tiny.yaml", "--max-steps", "5"},
           "train: there is no option --max-steps; a setting is written train.steps=5 (normlab train --help lists "
           "them)"},
          {{"--verison"},
           "there is no command '--verison'; did you mean '--version'? (normlab --help lists the commands)"},
          {{"sample", "@/run", "--prompt-file", "@/words.gz"},
           "--prompt-file @/words.gz: is a gzip file, not UTF-8 text; unpack it: gunzip"},
          {{"train", "@/tiny.yaml", "--batch-size", "--force"},
           "train: there is no option --batch-size; a setting is written train.batch_size=VALUE (normlab train --help "
           "lists them)"},
          {{"train", "@/tiny.yaml", "--train.stepz=5"},
           "command line: the section train has no key 'stepz'; did you mean 'steps'?"},
          {{"diff", "@/run", "@/run", "--train.steps=5"},
           "diff: there is no option --train.steps (normlab diff --help lists them)"},
          {{"train", "--", "@/tiny.yaml", "--help"},
           "train: one CONFIG is expected, and there is '--help' too; usage: normlab train CONFIG [key=value ...]  |  "
           "--resume RUN [key=value ...]"},
          {{"help", "trian"}, "there is no command 'trian'; did you mean 'train'? (normlab --help lists the commands)"},
          {{"completion", "tcsh"}, "completion: bash|zsh|fish is expected, got 'tcsh'"},
          {{"train", "@/tiny.yaml", "-f"}, "train: options begin with two dashes, got -f"},
          {{"train", "@/tiny.yaml", "--stop-at"}, "train: --stop-at needs a value: --stop-at N"},
          {{"train", "@/tiny.yaml", "--stop-at", "0"}, "train: --stop-at takes a whole number of at least 1, got '0'"},
          {{"train", "@/tiny.yaml", "--stop-at", "ten"},
           "train: --stop-at takes a whole number of at least 1, got 'ten'"},
          {{"train", "@/tiny.yaml", "--force=yes"}, "train: --force takes no value, got --force=yes"},
          {{"train", "@/tiny.yaml", "=3"}, "command line: '=3' is not an override; write key=value"},
          {{"train", "@/tiny.yaml", "optimizer.lr 3e-4"},
           "train: one CONFIG is expected, and there is 'optimizer.lr 3e-4' too; usage: normlab train CONFIG "
           "[key=value ...]  |  --resume RUN [key=value ...]"},
          {{"train", "@/none.yaml"}, "cannot read @/none.yaml: there is no such file; check the path"},
          {{"train", "@/"}, "cannot read @/: it is a directory; name a file"},
          {{"train", "--resume"}, "train: --resume needs a value: --resume RUN"},
          {{"train", "--resume", "@/run", "@/tiny.yaml"},
           "train: --resume takes no CONFIG, and there is '@/tiny.yaml'; the run has its own"},
          {{"train", "--resume", "@/none"},
           "@/none: --resume takes the directory of a run, and there is none; name one that normlab train wrote"},
          {{"train", "--resume", "@/tiny.yaml"},
           "@/tiny.yaml: --resume takes the directory of a run, and there is none; name one that normlab train wrote"},
          {{"eval"},
           "eval: CHECKPOINT is missing; usage: normlab eval CHECKPOINT [key=value ...] [--data FILE] [--json]"},
          {{"eval", "@/none"}, "cannot read @/none: there is no such file; check the path"},
          {{"eval", "@/run", "@/other"},
           "eval: one CHECKPOINT is expected, and there is '@/other' too; usage: normlab eval CHECKPOINT [key=value "
           "...] [--data FILE] [--json]"},
          {{"eval", "@/run", "--data", "@/none.txt"}, "cannot read @/none.txt: there is no such file; check the path"},
          {{"eval", "@/run", "--data", "@/"}, "cannot read @/: it is a directory; name a file"},
          {{"eval", "@/run", "--jsn"},
           "eval: there is no option --jsn; did you mean '--json'? (normlab eval --help lists them)"},
          {{"eval", "@/run", "model.n_layers=2"},
           "eval: model.n_layers cannot change from 1 to 2; a trained model keeps its settings, and only "
           "train.threads, eval.statistics and data.*, without data.tokenizer and data.vocab_size, can be given"},
          {{"eval", "@/run", "data.tokenizer=byte"},
           "eval: data.tokenizer cannot change from char to byte; a trained model keeps its settings, and only "
           "train.threads, eval.statistics and data.*, without data.tokenizer and data.vocab_size, can be given"},
          {{"eval", "@/run", "optimizer.lr=1"},
           "eval: optimizer.lr cannot change from 0.001 to 1; a trained model keeps its settings, and only "
           "train.threads, eval.statistics and data.*, without data.tokenizer and data.vocab_size, can be given"},
          {{"sample"}, "sample: CHECKPOINT is missing; usage: normlab sample CHECKPOINT [options]"},
          {{"sample", "@/none"}, "cannot read @/none: there is no such file; check the path"},
          {{"sample", "@/tiny.yaml"},
           "@/tiny.yaml: the first 8 bytes say that the header has <> bytes, and at most 100000000 are allowed; is "
           "this a safetensors file? If so, it is damaged: take it from its source again"},
          {{"sample", "@/run", "--prompt"}, "sample: --prompt needs a value: --prompt TEXT"},
          {{"sample", "@/run", "--promt", "a"},
           "sample: there is no option --promt; did you mean '--prompt'? (normlab sample --help lists them)"},
          {{"sample", "@/run", "--temperature", "-1"},
           "sample: --temperature takes a number from 0 to 1e+06, got '-1'"},
          {{"sample", "@/run", "--temperature", "nan"},
           "sample: --temperature takes a number from 0 to 1e+06, got 'nan'"},
          {{"sample", "@/run", "--temperature", "warm"},
           "sample: --temperature takes a number from 0 to 1e+06, got 'warm'"},
          {{"sample", "@/run", "--top-p", "1.5"}, "sample: --top-p takes a number from 0 to 1, got '1.5'"},
          {{"sample", "@/run", "--top-p", "-0.1"}, "sample: --top-p takes a number from 0 to 1, got '-0.1'"},
          {{"sample", "@/run", "--top-k", "-1"}, "sample: --top-k takes a whole number of at least 0, got '-1'"},
          {{"sample", "@/run", "--top-k", "1.5"}, "sample: --top-k takes a whole number of at least 0, got '1.5'"},
          {{"sample", "@/run", "--tokens", "-1"}, "sample: --tokens takes a whole number of at least 0, got '-1'"},
          {{"sample", "@/run", "--samples", "0"}, "sample: --samples takes a whole number of at least 1, got '0'"},
          {{"sample", "@/run", "--seed", "-1"}, "sample: --seed takes a whole number of at least 0, got '-1'"},
          {{"sample", "@/run", "--stop", ""}, "sample: --stop takes a text that is not empty"},
          {{"sample", "@/run", "--stop", "a", "--stop", "b\xFF"},
           "sample: --stop: byte 1 is not UTF-8; give a text, as the terminal writes it"},
          {{"sample", "@/run", "--prompt", "a", "--prompt-file", "b"},
           "sample: give --prompt or --prompt-file, not both"},
          {{"sample", "@/run", "--prompt-file", "@/none.txt"},
           "cannot read @/none.txt: there is no such file; check the path"},
          {{"sample", "@/run", "model.n_layers=2"},
           "sample: 'model.n_layers=2' is no option; a checkpoint has its own settings, and key=value cannot change "
           "them"},
          {{"sample", "@/run", "--prompt", "ab\xCE\xA9"},
           "--prompt: 1 character is not among the 52 of the vocabulary: '\xCE\xA9' (U+03A9) once; the first is at "
           "byte "
           "2 (line 1, column 3); leave it out, or train with data.tokenizer=byte or bpe"},
          {{"sample", "@/run", "--prompt", "ab\xFF"},
           "--prompt: byte 2 (line 1, column 3) is not UTF-8; convert the text to UTF-8, or use data.tokenizer=byte or "
           "bpe, which take "
           "any bytes"},
          {{"inspect"},
           "inspect: CONFIG or CHECKPOINT is missing; usage: normlab inspect CONFIG|CHECKPOINT [key=value ...] "
           "[--seeds N] [--depths L,L,...] [--shards K,K,...] [--curvature] [--svg FILE] [--json]"},
          {{"inspect", "@/tiny.yaml", "@/tiny.yaml"},
           "inspect: one CONFIG or CHECKPOINT is expected, and there is '@/tiny.yaml' too; usage: normlab inspect "
           "CONFIG|CHECKPOINT [key=value ...] [--seeds N] [--depths L,L,...] [--shards K,K,...] [--curvature] [--svg "
           "FILE] [--json]"},
          {{"inspect", "@/none.yaml"}, "cannot read @/none.yaml: there is no such file; check the path"},
          {{"inspect", "@/tiny.yaml", "--depths", "6"},
           "inspect: --depths takes two depths or more, to fit an exponent through"},
          {{"inspect", "@/tiny.yaml", "--depths", "6,x"},
           "inspect: --depths takes rising numbers of layers, as 6,12,24, got '6,x'"},
          {{"inspect", "@/tiny.yaml", "--seeds", "0"}, "inspect: --seeds takes a whole number of at least 1, got '0'"},
          {{"inspect", "@/tiny.yaml", "--shards", "0"},
           "inspect: --shards takes rising numbers of shards, as 6,12,24, got '0'"},
          {{"inspect", "@/tiny.yaml", "--shards", "3"}, "inspect: --shards: 3 does not divide train.batch_size, 4"},
          {{"inspect", "@/tiny.yaml", "--svg"}, "inspect: --svg needs a value: --svg FILE"},
          {{"inspect", "@/run", "--seeds", "2"},
           "inspect: --seeds and --depths are about fresh models; give a configuration instead of @/run"},
          {{"inspect", "@/run", "model.norm=rms"},
           "model.norm cannot change from layer to rms; a trained model keeps its settings"},
          {{"inspect", "@/tiny.yaml", "--svg", "@/none/x.svg"},
           "cannot write @/none/x.svg: its directory does not exist; create it or choose another path"},
          {{"check"},
           "check: CONFIG or CHECKPOINT is missing; usage: normlab check CONFIG|CHECKPOINT [key=value ...] [--json]"},
          {{"check", "@/none.yaml"}, "cannot read @/none.yaml: there is no such file; check the path"},
          {{"check", "@/tiny.yaml", "model.norm=rmz"},
           "command line: model.norm: 'rmz' is not one of layer rms scale group instance layer_seq batch batch_step "
           "power dyt none fixed; did you mean 'rms'?"},
          {{"check", "@/run", "model.norm=rms"},
           "model.norm cannot change from layer to rms; a trained model keeps its settings"},
          {{"sweep"}, "sweep: SWEEP is missing; usage: normlab sweep SWEEP [key=value ...]"},
          {{"sweep", "@/none.yaml"}, "cannot read @/none.yaml: there is no such file; check the path"},
          {{"sweep", "@/tiny.yaml", "--seeds", "0"}, "sweep: --seeds takes a whole number of at least 1, got '0'"},
          {{"reproduce", "warmpu"}, "reproduce: there is no claim 'warmpu'; did you mean 'warmup'? (<> warmup<>)"},
          {{"reproduce", "K99"}, "reproduce: there is no claim 'K99' (<> warmup<>)"},
          {{"reproduce", "--frce"},
           "reproduce: there is no option --frce; did you mean '--force'? (normlab reproduce --help lists them)"},
          {{"report"}, "report: RUN is missing; usage: normlab report RUN..."},
          {{"report", "@/none"},
           "@/none: this is no directory of a run: it lacks run.json or config.yaml; name one that normlab train "
           "wrote"},
          {{"report", "@/run", "seed=1"}, "report: the runs are as they are; 'seed=1' cannot change them"},
          {{"report", "@/run", "--svg", "x.svg"}, "report: --svg takes the directory of a sweep"},
          {{"diff"}, "diff: two runs are expected; usage: normlab diff RUN RUN"},
          {{"diff", "@/run"}, "diff: two runs are expected; usage: normlab diff RUN RUN"},
          {{"diff", "@/run", "@/none"},
           "@/none: this is no directory of a run: it lacks run.json or config.yaml; name one that normlab train "
           "wrote"},
          {{"verify"}, "verify: FILE is missing; usage: normlab verify FILE... [--double] [--json]"},
          {{"verify", "@/run/checkpoints/step-000005.safetensors", "seed=1"},
           "verify: a reference file has its own configuration; 'seed=1' cannot change it"},
          {{"export"}, "export: --to takes hf, pytorch or csv, and is missing"},
          {{"export", "@/run", "@/x"}, "export: --to takes hf, pytorch or csv, and is missing"},
          {{"export", "@/run", "--to", "pytroch", "@/x"},
           "export: --to takes hf, pytorch or csv, got 'pytroch'; did you mean 'pytorch'?"},
          {{"export", "@/run", "--to", "hf"},
           "export: --to hf takes a checkpoint and a directory, and there are 1 names; usage: normlab export "
           "CHECKPOINT --to hf|pytorch DIR  |  RUN --to csv FILE"},
          {{"export", "@/run", "--to", "hf", "@/x", "seed=1"},
           "export: 'seed=1' changes nothing; a trained model keeps its settings"},
          {{"export", "@/none", "--to", "csv", "@/x.csv"}, "cannot read @/none: there is no such file; check the path"},
          {{"export", "@/run", "--to", "csv", "@/none/x.csv"},
           "cannot write @/none/x.csv: its directory does not exist; create it or choose another path"},
          {{"export", "@/tiny.yaml", "--to", "csv", "@/x.csv"},
           "@/tiny.yaml:1:1:1: expected a value, found 'd'; put the line back as it was, or delete the file to go on "
           "without it"},
          {{"data"},
           "data: a corpus and a file are expected; usage: normlab data NAME FILE [seed=N] [data.size=N] "
           "[data.order=N] | --parse FILE"},
          {{"data", "tales"},
           "data: a corpus and a file are expected; usage: normlab data NAME FILE [seed=N] [data.size=N] "
           "[data.order=N] | --parse FILE"},
          {{"data", "talse", "@/x.txt"},
           "'talse' is not one of the built-in corpora tales markov copy brackets; did you mean 'tales'?"},
          {{"data", "tales", "@/none/x.txt"},
           "cannot write @/none/x.txt: its directory does not exist; create it or choose another path"},
          {{"data", "tales", "@/tiny.yaml"},
           "data: @/tiny.yaml exists, and is kept; name another file, or delete it first"},
          {{"inspect", "@/tiny.yaml", "--svg", "@/tiny.yaml"},
           "inspect: @/tiny.yaml exists, and is kept; name another file, or delete it first"},
          {{"eval", "@/run", "--logits", "@/tiny.yaml"},
           "eval: @/tiny.yaml exists, and is kept; name another file, or delete it first"},
          {{"report", "@/run", "--out", "@/tiny.yaml"},
           "report: @/tiny.yaml exists, and is kept; name another file, or delete it first"},
          {{"export", "@/run", "--to", "csv", "@/run/metrics.jsonl"},
           "export: @/run/metrics.jsonl exists, and is kept; name another file, or delete it first"},
          {{"export", "@/run", "--to", "hf", "@/tiny.yaml"},
           "@/tiny.yaml: the directory cannot be made below a file; name another one"},
          {{"data", "tales", "@/"}, "cannot write @/: it is a directory; name a file"},
          {{"data", "tales", "@/x.txt", "model.norm=rms"},
           "data: model.norm changes nothing in a corpus; seed, data.size and data.order do"},
          {{"data", "tales", "@/x.txt", "data.size=0"},
           "command line: data.size: 0 is out of range; it takes from 1 to 1000000000"},
          {{"data", "markov", "@/x.txt", "data.order=6"},
           "command line: data.order: 6 is out of range; it takes from 0 to 5"},
          {{"bench", "gem"},
           "bench: there is no benchmark 'gem'; did you mean 'gemm'? (peak gemm norm attention step-A step-B "
           "step-C step-D sample tokenizer start)"},
          {{"bench", "--threads", "0"}, "bench: --threads takes a whole number of at least 1, got '0'"},
          {{"bench", "--threads", "2000"}, "bench: --threads takes at most 1024, got 2000"},
          {{"bench", "seed=1"}, "bench: the sizes are fixed; 'seed=1' cannot change them"},
          {{"bench", "peak", "--compare", "@/none.json"},
           "cannot read @/none.json: there is no such file; check the path"},
          {{"bench", "peak", "--compare", "@/tiny.yaml"}, "@/tiny.yaml:1:1: expected a value, found 'd'"},
      });
  CHECK_FALSE(shop.exists("x.txt"));
  CHECK_FALSE(shop.exists("none"));
  CHECK(read_file(shop.path("tiny.yaml")) == kTinyConfig);
}
