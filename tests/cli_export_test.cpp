// export from the command line: what is in the files, and what is refused.
#include "catch.h"
#include "cli_runs.h"
#include "normlab/data/tokenizer_json.h"
#include "normlab/formats/event_file.h"
#include "normlab/formats/safetensors.h"
#include "normlab/train/checkpoint.h"
#include "normlab/train/export.h"

using namespace normlab;

namespace {

using Floats = std::vector<float>;

Finished exported(const Workshop& shop, const std::string& run, const std::string& to, const std::string& folder) {
  return run_program({"export", shop.path(run), "--to", to, shop.path(folder)});
}

Safetensors weights(const Workshop& shop, const std::string& folder) {
  return Safetensors::read(shop.path(folder + "/model.safetensors"));
}
Safetensors checkpoint_of(const Workshop& shop, const std::string& run) {
  return Safetensors::read(shop.checkpoint(run, "step-000005"));
}
Json json_of(const Workshop& shop, const std::string& file) { return parse_json(read_file(shop.path(file)), file); }

Floats values(const Safetensors& file, const std::string& name) { return file.at(name).values<float>(); }

const Strings kLlama{"model.norm=rms", "model.position=rope", "model.activation=swiglu", "model.bias=false",
                     "model.tie_embeddings=false"};

}  // namespace

TEST_CASE("cli: export --to hf writes a LayerNorm model as GPT-2, with its matrices transposed") {
  const Workshop& shop = trained();
  const Finished done = exported(shop, "run", "hf", "gpt2");
  INFO(done.err);
  REQUIRE(done.code == 0);
  const Json config = json_of(shop, "gpt2/config.json");
  CHECK(config.at("model_type").string() == "gpt2");
  CHECK(config.at("activation_function").string() == "gelu");
  CHECK(config.at("n_embd").integer() == 16);
  CHECK(config.at("n_positions").integer() == 16);
  CHECK(config.at("tie_word_embeddings").boolean());
  const Safetensors ours = checkpoint_of(shop, "run"), theirs = weights(shop, "gpt2");
  CHECK(theirs.metadata_at("format") == "pt");
  CHECK(theirs.tensors().size() == 16);  // two embeddings, 12 of the block, 2 of the last norm
  const Floats linear = values(ours, "blocks.0.attn.qkv.weight"),
               conv = values(theirs, "transformer.h.0.attn.c_attn.weight");
  CHECK(theirs.at("transformer.h.0.attn.c_attn.weight").shape == std::vector<std::int64_t>{16, 48});
  for (std::size_t out = 0; out < 48; ++out)
    for (std::size_t in = 0; in < 16; ++in) REQUIRE(conv[in * 48 + out] == linear[out * 16 + in]);
  CHECK(values(theirs, "transformer.wte.weight") == values(ours, "tok_embed.weight"));
  CHECK(values(theirs, "transformer.ln_f.bias") == values(ours, "final_norm.bias"));
  CHECK(read_tokenizer_json(read_file(shop.path("gpt2/tokenizer.json")), "tokenizer.json") ==
        Checkpoint(shop.checkpoint("run", "step-000005")).tokenizer());
  CHECK(json_of(shop, "gpt2/tokenizer_config.json").at("model_max_length").integer() == 16);
}

TEST_CASE("cli: export --to hf gives GPT-2 zeros where a model has no bias, and names the tanh GELU") {
  const Workshop shop;
  REQUIRE(shop.train("run", {"model.bias=false", "model.activation=gelu_tanh"}).code == 0);
  REQUIRE(exported(shop, "run", "hf", "gpt2").code == 0);
  CHECK(json_of(shop, "gpt2/config.json").at("activation_function").string() == "gelu_new");
  CHECK(values(weights(shop, "gpt2"), "transformer.h.0.mlp.c_fc.bias") == Floats(64, 0));
  CHECK(values(weights(shop, "gpt2"), "transformer.ln_f.bias") == Floats(16, 0));
}

TEST_CASE("cli: export --to hf writes RMSNorm, rope and swiglu as Llama") {
  const Workshop shop;
  REQUIRE(shop.train("run", joined(kLlama, {"model.rope_base=500"})).code == 0);
  REQUIRE(exported(shop, "run", "hf", "llama").code == 0);
  const Json config = json_of(shop, "llama/config.json");
  CHECK(config.at("model_type").string() == "llama");
  CHECK(config.at("rope_theta").real() == 500);
  CHECK(config.at("num_key_value_heads").integer() == 2);
  const Safetensors ours = checkpoint_of(shop, "run"), theirs = weights(shop, "llama");
  Floats stacked;
  for (const char* part : {"q", "k", "v"})
    for (const float value : values(theirs, text("model.layers.0.self_attn.", part, "_proj.weight")))
      stacked.push_back(value);
  CHECK(stacked == values(ours, "blocks.0.attn.qkv.weight"));
  CHECK(values(theirs, "model.layers.0.post_attention_layernorm.weight") == values(ours, "blocks.0.mlp_norm.weight"));
  CHECK(values(theirs, "lm_head.weight") == values(ours, "head.weight"));
}

TEST_CASE("cli: export --to hf refuses what no layout expresses, by its keys, and writes nothing") {
  const Workshop shop;
  REQUIRE(shop.train("run", {"model.norm=batch", "model.placement=post"}).code == 0);
  const Finished done = exported(shop, "run", "hf", "folder");
  CHECK(done.code == 2);
  CHECK_THAT(done.err, ContainsSubstring("model.norm is batch and must be layer") &&
                           ContainsSubstring("model.placement is post and must be pre"));
  CHECK_FALSE(shop.exists("folder"));
  REQUIRE(shop.train("near", joined(kLlama, {"model.bias=true"})).code == 0);
  const Finished near = exported(shop, "near", "hf", "folder");
  CHECK(near.code == 2);
  CHECK(holds(near.err, "Llama can express: model.bias is true and must be false."));
}

TEST_CASE("cli: export --to pytorch writes every parameter and buffer, and the settings into model.py") {
  const Workshop shop;
  REQUIRE(shop.train("run", {"model.norm=power", "model.placement=deepnorm", "data.tokenizer=bpe",
                             "data.vocab_size=270", "optimizer.name=sgd"})
              .code == 0);
  REQUIRE(exported(shop, "run", "pytorch", "torch").code == 0);
  const std::string source = read_file(shop.path("torch/model.py"));
  CHECK(holds(source, "\"norm\": \"power\""));
  CHECK(holds(source, "\"norm_eps\": 1.0e-05"));
  CHECK(holds(source, "\"vocab_size\": 270"));
  CHECK(holds(source, "\"name\": \"sgd\""));
  CHECK_FALSE(holds(source, "@CONFIG@"));
  const Safetensors ours = checkpoint_of(shop, "run"), theirs = weights(shop, "torch");
  for (const StoredTensor& tensor : theirs.tensors()) CHECK(tensor.bytes == ours.at(tensor.name).bytes);
  CHECK(theirs.find("blocks.0.attn_norm.running_projection") != nullptr);
  std::size_t of_model = 0;
  for (const StoredTensor& tensor : ours.tensors()) of_model += !tensor.name.starts_with("optimizer.");
  CHECK(theirs.tensors().size() == of_model);
  CHECK(shop.exists("torch/tokenizer.json"));
}

TEST_CASE("cli: an export into a directory that holds one of its files is refused, and nothing is written") {
  const Workshop& shop = trained();
  std::filesystem::create_directory(shop.path("mine"));
  for (const std::string file : {"model.safetensors", "tokenizer.json", "config.json", "model.py"}) {
    shop.write("mine/" + file, "mine");
    const Finished done = exported(shop, "run", file == "model.py" ? "pytorch" : "hf", "mine");
    CHECK(done.code == 2);
    CHECK(done.err == text("normlab: export: ", shop.path("mine/" + file),
                           " exists, and is kept; name another file, or delete it first\n"));
    CHECK(read_file(shop.path("mine/" + file)) == "mine");
    std::filesystem::remove(shop.path("mine/" + file));
    CHECK(std::filesystem::is_empty(shop.path("mine")));
  }
}

TEST_CASE("export: metrics as a table, one number a row") {
  CHECK(metrics_csv("{\"step\":1,\"kind\":\"train\",\"loss\":2.5,\"lr\":1e-3}\n"
                    "{\"step\":0,\"kind\":\"layers\",\"norm\":{\"blocks.1.mlp.up.weight\":3,\"tok_embed.weight\":4},"
                    "\"residual_rms\":[0.5,0.25],\"clip_rate\":null}\n"
                    "{\"step\":1,\"kind\":\"eval\",\"loss\":null,\"finite\":false}\n"
                    "{\"step\":3,\"kind\":\"curvature\",\"sharpness\":{\"value\":9,\"error\":0.1},\"loss_range\":[1,2],"
                    "\"covariate_shift\":[{\"layer\":\"blocks.7\",\"cosine\":0.5}]}\n"
                    "{\"step\":2,\"ki",
                    "metrics.jsonl") ==
        "step,layer,part,measure,value\n"
        "1,,train,loss,2.5\n"
        "1,,train,lr,0.001\n"
        "0,1,mlp.up.weight,norm,3\n"
        "0,,tok_embed.weight,norm,4\n"
        "0,0,block,residual_rms,0.5\n"
        "0,1,block,residual_rms,0.25\n"
        "1,,eval,loss,NaN\n"
        "3,,curvature,sharpness,9\n"
        "3,,curvature,sharpness_error,0.1\n"
        "3,,curvature,loss_range_low,1\n"
        "3,,curvature,loss_range_high,2\n"
        "3,7,block,covariate_shift_cosine,0.5\n");
  CHECK_THROWS_WITH(metrics_csv("[1]\n", "metrics.jsonl"), ContainsSubstring("metrics.jsonl:1"));
}

TEST_CASE("cli: export --to csv takes a run; wrong words are told") {
  const Workshop& shop = trained();
  const Finished csv = run_program({"export", shop.path("run"), "--to", "csv", "/dev/stdout"});
  CHECK(csv.code == 0);
  CHECK(csv.out.starts_with("step,layer,part,measure,value\n"));
  CHECK(holds(csv.out, "\n5,,train,loss,"));
  CHECK(holds(csv.out, "\n0,0,attn.qkv.weight,grad_norm,"));
  CHECK(holds(run_program({"export", shop.path("run"), "--to", "pytroch", "x"}).err, "did you mean pytorch?"));
  CHECK(run_program({"export", shop.path("run"), "--to", "hf"}).code == 2);
  CHECK(holds(run_program({"export", shop.path("run"), "x"}).err, "--to takes hf, pytorch or csv"));
}

TEST_CASE("cli: a run writes an event file whose records are whole, and a resumed run one more") {
  const Workshop shop;
  REQUIRE(shop.train("run", {"log.layers_every=0"}).code == 0);
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(shop.path("run")))
    if (holds(entry.path().filename().string(), "tfevents")) bytes = read_file(entry.path().string());
  std::size_t records = 0, at = 0;
  for (std::uint64_t length; at + 16 <= bytes.size(); at += length + 16, ++records)
    length = static_cast<unsigned char>(bytes[at]) + 256u * static_cast<unsigned char>(bytes[at + 1]);
  CHECK(at == bytes.size());
  CHECK(records == 2 + 5 + 1 + 2);  // version and configuration, train, eval, timing of steps 2 and 4
  CHECK(holds(bytes, "train/loss"));
  CHECK(holds(bytes, "eval/bits_per_byte"));
  CHECK(holds(bytes, "timing/tokens_per_s"));
  CHECK(holds(bytes, "    model:\n"));
}
