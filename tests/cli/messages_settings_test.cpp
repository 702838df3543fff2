// The messages about settings: each key's type, range and choices, and what does not go together.
#include "messages.h"
#include "normlab/train/run_config.h"

using namespace normlab;

namespace {

// What precedes each setting: normlab train tiny.yaml run.dir=none
const Strings kTrain{"train", "@/tiny.yaml", "run.dir=@/none"};

}  // namespace

TEST_CASE("messages: a value out of its key's range is told with the range", "[cli]") {
  const Workshop shop;
  const std::vector<std::pair<std::string, std::string>> rows{
      {"optimizer.lr=-1", "at least 0"},
      {"model.n_layers=0", "from 1 to 10000"},
      {"seed=-1", "at least 0"},
      {"optimizer.grad_clip=-1", "at least 0"},
      {"model.dropout=1", "0 or more and below 1"},
      {"model.dropout=-0.1", "0 or more and below 1"},
      {"model.norm_eps=0", "from 1e-37 to 1e+30"},
      {"model.norm_eps=1e300", "from 1e-37 to 1e+30"},
      {"model.norm_gain=1e300", "from -3e+38 to 3e+38"},
      {"optimizer.eps=-1e-8", "from 1e-37 to 1e+30"},
      {"optimizer.eps=1e-300", "from 1e-37 to 1e+30"},
      {"optimizer.eps=1e300", "from 1e-37 to 1e+30"},
      {"optimizer.momentum=1", "0 or more and below 1"},
      {"optimizer.weight_decay=-1", "from 0 to 1000000"},
      {"optimizer.weight_decay=1e300", "from 0 to 1000000"},
      {"schedule.warmup_steps=-1", "at least 0"},
      {"model.norm_momentum=2", "from 0 to 1"},
      {"model.rope_base=0", "from 1e-37 to 1e+30"},
      {"model.rope_base=1e300", "from 1e-37 to 1e+30"},
      {"model.embed_std=-1", "from 0 to 1e+30"},
      {"model.embed_std=1e300", "from 0 to 1e+30"},
      {"train.steps=0", "from 1 to 1000000000"},
      {"train.steps=1000000000000000000", "from 1 to 1000000000"},
      {"train.batch_size=0", "from 1 to 1000000"},
      {"train.batch_size=1000000000000", "from 1 to 1000000"},
      {"train.grad_accumulation=0", "from 1 to 1000000"},
      {"train.threads=0", "from 1 to 1024"},
      {"eval.every=0", "at least 1"},
      {"eval.windows=0", "at least 1"},
      {"log.every=0", "at least 1"},
      {"log.layers_every=-1", "at least 0"},
      {"checkpoint.every=0", "at least 1"},
      {"checkpoint.keep=0", "at least 1"},
      {"model.d_ff=4611686018427387904", "from 1 to 1000000"},
      {"model.context_length=0", "from 1 to 1000000"},
      {"data.size=1000000000000000", "from 1 to 1000000000"},
      {"data.size=0", "from 1 to 1000000000"},
      {"data.order=9", "from 0 to 5"},
      {"data.val_fraction=0", "above 0 and below 1"},
      {"data.val_fraction=1", "above 0 and below 1"},
      {"data.vocab_size=255", "from 256 to 1000000"},
      {"data.topic_span=1", "from 2 to 1000000000"},
  };
  for (const auto& [setting, range] : rows) {
    const std::size_t equals = setting.find('=');
    check_mistake(shop, kTrain,
                  {{setting},
                   text("command line: ", setting.substr(0, equals), ": ", setting.substr(equals + 1),
                        " is out of range; it takes ", range)});
  }
  CHECK_FALSE(shop.exists("none"));
}

TEST_CASE("messages: a value that is no choice is told with the choices, and the nearest of them", "[cli]") {
  const Workshop shop;
  const std::vector<std::pair<std::string, std::string>> rows{
      {"model.norm=rmz",
       "layer rms scale group instance layer_seq batch batch_step power dyt none fixed; did you mean 'rms'?"},
      {"model.norm=bacth",
       "layer rms scale group instance layer_seq batch batch_step power dyt none fixed; did you mean 'batch'?"},
      {"model.norm=batchnorm",
       "layer rms scale group instance layer_seq batch batch_step power dyt none fixed; did you mean 'batch'?"},
      {"model.placement=postt", "pre post sandwich res_post deepnorm none; did you mean 'post'?"},
      {"model.activation=gelu_tan", "gelu gelu_tanh relu swiglu; did you mean 'gelu_tanh'?"},
      {"model.position=rop", "learned sinusoidal rope; did you mean 'rope'?"},
      {"model.init=gtp2", "gpt2 xavier; did you mean 'gpt2'?"},
      {"data.documents=line", "stream lines; did you mean 'lines'?"},
      {"data.batches=topics", "random topic; did you mean 'topic'?"},
      {"data.rot13=yes", "none batch sample"},
      {"optimizer.name=adam", "adamw sgd; did you mean 'adamw'?"},
      {"schedule.decay=cos", "constant linear cosine inverse_sqrt; did you mean 'cosine'?"},
      {"eval.statistics=run", "running batch prefix; did you mean 'running'?"},
      {"model.norm_padding=skip", "ignore count"},
  };
  for (const auto& [setting, choices] : rows) {
    const std::size_t equals = setting.find('=');
    check_mistake(shop, kTrain,
                  {{setting},
                   text("command line: ", setting.substr(0, equals), ": '", setting.substr(equals + 1),
                        "' is not one of ", choices)});
  }
}

TEST_CASE("messages: a key that does not exist, and a value of another type", "[cli]") {
  const Workshop shop;
  check_mistakes(
      shop, kTrain,
      {
          {{"model.norms=rms"}, "command line: the section model has no key 'norms'; did you mean 'norm'?"},
          {{"model.n-layers=2"}, "command line: the section model has no key 'n-layers'; did you mean 'n_layers'?"},
          {{"modle.norm=rms"}, "command line: the configuration has no key 'modle'; did you mean 'model'?"},
          {{"model.lr=0.1"}, "command line: the section model has no key 'lr'; it belongs elsewhere: optimizer.lr"},
          {{"norm=rms"}, "command line: the configuration has no key 'norm'; it belongs elsewhere: model.norm"},
          {{"model.temperature=3"},
           "command line: the section model has no key 'temperature'; it has from, n_layers, n_heads, d_model, d_ff, "
           "context_length, norm, placement, norm_eps, norm_momentum, norm_groups, norm_warmup_steps, norm_padding, "
           "norm_sync, norm_gain, activation, position, rope_base, bias, tie_embeddings, dropout, init, embed_std "
           "(normlab train --help-config lists all keys)"},
          {{"model=3"}, "command line: model: a section takes keys (such as model.KEY), not '3'"},
          {{"a.b.c=1"},
           "command line: the configuration has no key 'a'; it has seed, run, data, model, optimizer, schedule, train, "
           "eval, log, checkpoint (normlab train --help-config lists all keys)"},
          {{"optimizer.lr=\"1e-4\""},
           "command line: optimizer.lr: wants a number, not the quoted \"1e-4\"; drop the quotes"},
          {{"optimizer.lr=a=b"}, "command line: optimizer.lr: wants a number, not 'a=b'"},
          {{"optimizer.lr=0,1"}, "command line: optimizer.lr: wants a number, not '0,1'"},
          {{"optimizer.lr=fast"}, "command line: optimizer.lr: wants a number, not 'fast'"},
          {{"optimizer.lr="}, "command line: optimizer.lr: wants a number, not nothing"},
          {{"optimizer.lr=.nan"}, "command line: optimizer.lr: .nan is not finite; it takes finite numbers"},
          {{"optimizer.lr=.inf"}, "command line: optimizer.lr: .inf is not finite; it takes finite numbers"},
          {{"optimizer.lr=[1]"}, "command line: optimizer.lr: wants a number, not a list of 1"},
          {{"model.bias=off"}, "command line: model.bias: wants true or false, not 'off'; write false"},
          {{"model.tie_embeddings=yes"},
           "command line: model.tie_embeddings: wants true or false, not 'yes'; write true"},
          {{"model.bias=1"}, "command line: model.bias: wants true or false, not '1'; write true"},
          {{"train.flush_denormals=on"},
           "command line: train.flush_denormals: wants true or false, not 'on'; write true"},
          {{"model.n_layers=2.0"}, "command line: model.n_layers: wants an integer, not '2.0'; write 2"},
          {{"model.n_layers=two"}, "command line: model.n_layers: wants an integer, not 'two'"},
          {{"model.n_layers=null"}, "command line: model.n_layers: wants an integer, not 'null'"},
          {{"model.n_layers=1e3"}, "command line: model.n_layers: wants an integer, not '1e3'; write 1000"},
          {{"model.n_layers=99999999999999999999"},
           "command line: model.n_layers: 99999999999999999999 does not fit into 64 bits, which go from "
           "-9223372036854775808 to 9223372036854775807"},
          {{"optimizer.betas=[0.9]"},
           "command line: optimizer.betas: wants a list of 2, each a number, not a list of 1"},
          {{"optimizer.betas=[0.9, 1]"},
           "command line: optimizer.betas[1]: 1 is out of range; it takes 0 or more and below 1"},
          {{"optimizer.betas=0.9"},
           "command line: optimizer.betas: wants a list of 2, each a number, not '0.9'; write it in [ ]"},
          {{"model.d_model=1000000000000", "model.n_heads=1"},
           "command line: model.d_model: 1000000000000 is out of range; it takes from 1 to 1000000"},
          {{"data.lengths=[4]"},
           "command line: data.lengths: wants a list of 2, each an integer or null, not a list of 1"},
          {{"data.lengths=4"},
           "command line: data.lengths: wants a list of 2, each an integer or null, not '4'; write it in [ ]"},
          {{"data.lengths=[4,-1]"}, "command line: data.lengths[1]: -1 is out of range; it takes from 0 to 1000000"},
      });
}

TEST_CASE("messages: a key that other trainers have is told as it is called here, whatever the section", "[cli]") {
  const Workshop shop;
  const std::string none = "command line: the configuration has no key '",
                    train = "command line: the section train has no key '";
  check_mistakes(
      shop, kTrain,
      {
          {{"train.epochs=3"},
           train + "epochs'; here it is train.steps (there are no epochs; one is about tokens to train on / "
                   "(train.batch_size x train.grad_accumulation x model.context_length) steps)"},
          {{"num-epochs=3"}, none + "num-epochs'; here it is train.steps <>"},
          {{"max_iters=3"}, none + "max_iters'; here it is train.steps"},
          {{"train.learning_rate=3"}, train + "learning_rate'; here it is optimizer.lr"},
          {{"model.n_embd=8"}, "command line: the section model has no key 'n_embd'; here it is model.d_model"},
          {{"hidden_size=8"}, none + "hidden_size'; here it is model.d_model"},
          {{"model.num_layers=8"},
           "command line: the section model has no key 'num_layers'; here it is model.n_layers"},
          {{"n_layer=8"}, none + "n_layer'; here it is model.n_layers"},
          {{"num_heads=8"}, none + "num_heads'; here it is model.n_heads"},
          {{"data.block_size=8"},
           "command line: the section data has no key 'block_size'; here it is model.context_length"},
          {{"maxSeqLen=8"}, none + "maxSeqLen'; here it is model.context_length"},
          {{"train.warmup=8"}, train + "warmup'; here it is schedule.warmup_steps"},
          {{"train.device=cuda"}, train + "device'; here it is train.threads (it trains on the CPU)"},
          {{"train.gradient_accumulation_steps=2"},
           train + "gradient_accumulation_steps'; here it is train.grad_accumulation"},
      });
}

TEST_CASE("messages: settings that do not go together, with each other or with the data", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.train("run").code == 0);
  shop.write("empty.txt", "");
  shop.write("text.txt", "abab\n");
  std::string broken, two;
  for (int i = 0; i < 20; ++i)
    broken += i == 10 ? "\xFF"
                        "some text "
                      : "some text ";
  for (int i = 0; i < 16; ++i) two += "ab";
  shop.write("broken.txt", broken);
  shop.write("short.txt", two);
  check_mistakes(
      shop, kTrain,
      {
          {{"schedule.min_lr=1"}, "schedule.min_lr: 1 lies above optimizer.lr, 0.001; it is the rate to end with"},
          {{"train.shards=3"}, "train.shards: 3 does not divide train.batch_size, 4"},
          {{"model.n_heads=3"},
           "model.n_heads: 3 does not divide model.d_model, 16; each head has d_model / n_heads channels"},
          {{"model.position=rope", "model.d_model=6"},
           "model.position: rope needs an even number of channels a head; model.d_model / model.n_heads is 3; change "
           "one of them, or take model.position=learned"},
          {{"model.position=rope", "model.d_model=1", "model.n_heads=1"},
           "model.position: rope needs an even number of channels a head; model.d_model / model.n_heads is 1; change "
           "one of them, or take model.position=learned"},
          {{"model.position=sinusoidal", "model.d_model=1", "model.n_heads=1"},
           "model.position: sinusoidal needs an even model.d_model, got 1; change it, or take model.position=learned"},
          {{"model.norm=group", "model.norm_groups=3"},
           "model.norm_groups: 3 does not divide model.d_model, 16; each group has d_model / norm_groups channels"},
          {{"model.norm=fixed"},
           "model.norm: fixed divides by the deviation that a trained model has; name one by model.from"},
          {{"model.norm=none", "model.placement=deepnorm"},
           "model.norm: none does not go with model.placement deepnorm, which multiplies the residual stream by (2 "
           "n_layers)^(1/4) at each sublayer and needs a norm to undo it; choose a norm, or the placement none"},
          {{"model.norm=none", "model.placement=sandwich"},
           "model.norm: none leaves nothing of model.placement sandwich, which is about where the norms of a "
           "sublayer's output are; choose the placement none"},
          {{"model.norm=none", "model.placement=res_post"},
           "model.norm: none leaves nothing of model.placement res_post, which is about where the norms of a "
           "sublayer's output are; choose the placement none"},
          {{"model.norm=rms", "model.placement=none"},
           "model.placement: none has no place for model.norm rms; choose a placement, or the norm none"},
          {{"model.norm=batch_step", "train.batch_size=1"},
           "train.batch_size: 1 leaves model.norm batch_step one row at each position, which is its own mean: the norm "
           "would give its bias whatever comes in; take 2 or more, or the norm batch"},
          {{"model.norm=batch", "train.batch_size=1", "model.context_length=1"},
           "train.batch_size: 1 with model.context_length 1 leaves model.norm batch one position, which is its own "
           "mean: the norm would give its bias whatever comes in; take more rows or a longer context"},
          {{"model.norm=batch_step", "train.shards=4"},
           "train.batch_size: 4 in 4 shards leaves model.norm batch_step one row at each position, which is its own "
           "mean: the norm would give its bias whatever comes in; take 2 or more, or the norm batch"},
          {{"data.batches=topic", "data.topic_span=16"},
           "data.topic_span: 16 tokens hold no window, which takes 17 (model.context_length + 1)"},
          {{"data.batches=topic", "data.documents=lines"},
           "data.batches: topic goes with data.documents = stream only"},
          {{"data.lengths=[4,4]", "data.documents=lines"},
           "data.lengths goes with data.documents = stream only; lines have theirs"},
          {{"data.lengths=[0,0]"},
           "data.lengths: [0, 0] is [min, jitter], and min takes 1 to model.context_length, 16, got 0"},
          {{"data.lengths=[17,2]"},
           "data.lengths: [17, 2] is [min, jitter], and min takes 1 to model.context_length, 16, got 17"},
          {{"data.lengths=[1,1]", "model.context_length=1"},
           "data.lengths: a row has at least 2 tokens, and model.context_length is 1; take 2 or more, or leave "
           "data.lengths out"},
          {{"data.source=talse"},
           "data.source: 'talse' is neither a file nor one of the built-in corpora tales markov copy brackets; did you "
           "mean 'tales'?"},
          {{"data.source=@/none.txt"},
           "data.source: '@/none.txt' is neither a file nor one of the built-in corpora tales markov copy brackets"},
          {{"data.source=@/"}, "cannot read @/: it is a directory; name a file"},
          {{"data.source=@/empty.txt"}, "data.source '@/empty.txt': is empty; give a text to learn from"},
          {{"data.source=@/text.txt"},
           "data.source '@/text.txt': there are 4 tokens to train on, but a window takes 17 (model.context_length + "
           "1); give more text, or lower model.context_length"},
          {{"data.validation=@/none.txt"}, "cannot read @/none.txt: there is no such file; check the path"},
          {{"data.validation=@/empty.txt"}, "data.validation '@/empty.txt': is empty; give a text to learn from"},
          {{"data.source=@/none/x", "data.validation=@/tiny.yaml"},
           "data.source: '@/none/x' is neither a file nor one of the built-in corpora tales markov copy brackets"},
          {{"data.tokenizer=chars"},
           "data.tokenizer: 'chars' is neither one of char byte bpe nor a file; did you mean 'char'?"},
          {{"data.tokenizer=@/none.json"}, "data.tokenizer: '@/none.json' is neither one of char byte bpe nor a file"},
          {{"data.tokenizer=@/tiny.yaml"}, "data.tokenizer '@/tiny.yaml':1:1: expected a value, found 'd'"},
          {{"data.tokenizer=bpe", "data.vocab_size=100000", "data.size=2000"},
           "data.vocab_size: 100000 tokens cannot be made: when there are 478, no two neighbours within a word, a "
           "number "
           "or a run of other characters, which alone are joined, occur twice; give at most that many, or more text"},
          {{"model.from=@/none"}, "cannot read @/none: there is no such file; check the path"},
          {{"model.from=@/tiny.yaml"},
           "@/tiny.yaml: the first 8 bytes say that the header has <> bytes, and at most 100000000 are allowed; is "
           "this a safetensors file? If so, it is damaged: take it from its source again"},
          {{"model.from=@/run", "model.d_model=32"},
           "model.from: @/run/checkpoints/step-000005.safetensors has model.d_model 16, and this configuration 32; "
           "only norms and dropout may differ"},
          {{"model.from=@/run", "data.tokenizer=byte"},
           "model.from: @/run/checkpoints/step-000005.safetensors has data.tokenizer char, which its words belong to, "
           "and this configuration byte; leave data.tokenizer out"},
          {{"data.source=@/broken.txt"},
           "data.source '@/broken.txt': byte 100 (line 1, column 101) is not UTF-8; convert the text to UTF-8, or use "
           "data.tokenizer=byte "
           "or bpe, which take any bytes"},
          {{"data.source=@/short.txt", "data.val_fraction=0.5"},
           "data.source '@/short.txt': there are 16 tokens to train on, but a window takes 17 (model.context_length + "
           "1); give more text, or lower model.context_length"},
          {{"data.size=20"},
           "data.source 'tales': there are 0 tokens to validate on, but a window takes at least 2; give more text, or "
           "a larger data.val_fraction"},
      });
  CHECK_FALSE(shop.exists("none"));
}
