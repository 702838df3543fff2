// export from the command line: what is in the files, and what is refused.
#include "normlab/interop/export.h"

#include <cstring>
#include <map>

#include "catch.h"
#include "cli_runs.h"
#include "normlab/data/tokenizer/tokenizer_json.h"
#include "normlab/formats/event_file.h"
#include "normlab/formats/safetensors.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/figures.h"

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

// One record of an event file, taken apart as protocol buffers are.
struct Event {
  double wall_time = 0;
  std::int64_t step = 0;
  bool restarts = false;
  Strings tags;
};

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    REQUIRE(!bytes.empty());
    const auto byte = static_cast<unsigned char>(bytes[0]);
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
}

// Calls act(field, number, bytes) for each field of a message.
template <class Act>
void for_fields(std::string_view message, const Act& act) {
  while (!message.empty()) {
    const std::uint64_t key = take_varint(message), wire = key & 7;
    const std::uint64_t number = wire == 0 || wire == 2 ? take_varint(message) : 0;
    const std::size_t size = wire == 0 ? 0 : wire == 1 ? 8 : wire == 5 ? 4 : number;
    REQUIRE(size <= message.size());
    act(key >> 3, number, message.substr(0, size));
    message.remove_prefix(size);
  }
}

// The records of all event files of a run, in the order of the files' names.
std::vector<Event> events_of(const Workshop& shop, const std::string& run) {
  Strings files;
  for (const auto& entry : std::filesystem::directory_iterator(shop.path(run)))
    if (holds(entry.path().filename().string(), "tfevents")) files.push_back(entry.path().string());
  std::ranges::sort(files);
  std::vector<Event> events;
  for (const std::string& file : files) {
    const std::string bytes = read_file(file);
    std::uint64_t length = 0;
    for (std::size_t at = 0; at < bytes.size(); at += length + 16) {
      std::memcpy(&length, bytes.data() + at, 8);
      REQUIRE(at + length + 16 <= bytes.size());
      Event event;
      for_fields(std::string_view(bytes).substr(at + 12, length), [&](auto field, auto number, std::string_view part) {
        if (field == 1) std::memcpy(&event.wall_time, part.data(), 8);
        if (field == 2) event.step = static_cast<std::int64_t>(number);
        if (field == 7) event.restarts = true;
        if (field == 5)
          for_fields(part, [&](auto, auto, std::string_view value) {
            for_fields(value, [&](auto of_value, auto, std::string_view tag) {
              if (of_value == 1) event.tags.emplace_back(tag);
            });
          });
      });
      events.push_back(event);
    }
  }
  return events;
}

}  // namespace

TEST_CASE("cli: export --to hf writes a LayerNorm model as GPT-2, with its matrices transposed", "[cli]") {
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

TEST_CASE("cli: export --to hf gives GPT-2 zeros where a model has no bias, and names the tanh GELU", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.train("run", {"model.bias=false", "model.activation=gelu_tanh"}).code == 0);
  REQUIRE(exported(shop, "run", "hf", "gpt2").code == 0);
  CHECK(json_of(shop, "gpt2/config.json").at("activation_function").string() == "gelu_new");
  CHECK(values(weights(shop, "gpt2"), "transformer.h.0.mlp.c_fc.bias") == Floats(64, 0));
  CHECK(values(weights(shop, "gpt2"), "transformer.ln_f.bias") == Floats(16, 0));
}

TEST_CASE("cli: export --to hf writes RMSNorm, rope and swiglu as Llama", "[cli]") {
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

TEST_CASE("cli: export --to hf refuses what no layout expresses, by its keys, and writes nothing", "[cli]") {
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

TEST_CASE("cli: export --to pytorch writes every parameter and buffer, and the settings into model.py", "[cli]") {
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

TEST_CASE("cli: an export into a directory that holds one of its files is refused, and nothing is written", "[cli]") {
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

TEST_CASE("export: metrics as a table, one number a row", "[cli]") {
  CHECK(metrics_csv("{\"step\":1,\"kind\":\"train\",\"loss\":2.5,\"lr\":1e-3}\n"
                    "{\"step\":0,\"kind\":\"layers\",\"norm\":{\"blocks.1.mlp.up.weight\":3,\"tok_embed.weight\":4},"
                    "\"residual_rms\":[0.5,0.25],\"clip_rate\":null}\n"
                    "{\"step\":1,\"kind\":\"eval\",\"loss\":null,\"loss_by_position\":[2,1.5],\"finite\":false}\n"
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
        "1,,position.0,loss_by_position,2\n"
        "1,,position.1,loss_by_position,1.5\n"
        "3,,curvature,sharpness,9\n"
        "3,,curvature,sharpness_error,0.1\n"
        "3,,curvature,loss_range_low,1\n"
        "3,,curvature,loss_range_high,2\n"
        "3,7,block,covariate_shift_cosine,0.5\n");
  CHECK_THROWS_WITH(metrics_csv("[1]\n", "metrics.jsonl"), ContainsSubstring("metrics.jsonl:1"));
}

TEST_CASE("cli: export --to csv takes a run; wrong words are told", "[cli]") {
  const Workshop& shop = trained();
  const Finished csv = run_program({"export", shop.path("run"), "--to", "csv", "/dev/stdout"});
  CHECK(csv.code == 0);
  CHECK(csv.out.starts_with("step,layer,part,measure,value\n"));
  CHECK(holds(csv.out, "\n5,,train,loss,"));
  CHECK(holds(csv.out, "\n0,0,attn.qkv.weight,grad_norm,"));
  CHECK(holds(run_program({"export", shop.path("run"), "--to", "pytroch", "x"}).err, "did you mean 'pytorch'?"));
  CHECK(run_program({"export", shop.path("run"), "--to", "hf"}).code == 2);
  CHECK(holds(run_program({"export", shop.path("run"), "x"}).err, "--to takes hf, pytorch or csv"));
}

TEST_CASE("cli: a run writes an event file whose records are whole, and a resumed run one more", "[cli]") {
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

TEST_CASE(
    "cli: event files hold each step once, however often a run was killed, and in order though the clock was set "
    "back",
    "[cli]") {
  const Workshop shop;
  const Strings settings{"train.steps=6", "checkpoint.every=2", "checkpoint.keep=9", "log.layers_every=2",
                         "log.every=1",   "eval.every=2",       "log.report=false"};
  REQUIRE(shop.train("run", joined(settings, {"--stop-at=5"})).code == 0);
  // As if it had been killed after step 5, with step 4 the last one saved, by a clock that was years ahead.
  std::filesystem::remove(shop.checkpoint("run", "step-000005"));
  constexpr double kAhead = 4e9;
  const EventScalar later[] = {{"mine/x", 1}};
  shop.write("run/events.out.tfevents.4000000000.host",
             version_event(kAhead) + scalar_event(kAhead, 2, later) + scalar_event(kAhead + 1, 5, later));
  for (const std::string stop : {"--stop-at=5", "--stop-at=6"}) {
    if (stop == "--stop-at=6") std::filesystem::remove(shop.checkpoint("run", "step-000005"));
    REQUIRE(run_program({"train", "--resume", shop.path("run"), stop}).code == 0);
  }
  std::map<std::string, std::vector<std::int64_t>> steps;  // by tag
  double latest = 0;
  std::size_t ordered = 0, restarts = 0;
  const std::vector<Event> events = events_of(shop, "run");
  for (const Event& event : events) {
    for (const std::string& tag : event.tags) steps[tag].push_back(event.step);
    if (event.wall_time < kAhead) continue;  // of the first file
    CHECK(event.wall_time >= latest);
    latest = event.wall_time;
    ++ordered;
    restarts += event.restarts;
  }
  CHECK(ordered > 10);
  CHECK(restarts == 1);  // the second resumption began at the same step
  using Steps = std::vector<std::int64_t>;
  CHECK(steps.at("train/loss") == Steps{1, 2, 3, 4, 5, 6});
  CHECK(steps.at("timing/tokens_per_s") == Steps{1, 2, 3, 4, 5, 6});
  CHECK(steps.at("eval/loss") == Steps{2, 4, 6});
  CHECK(steps.at("loss_by_position/position.15") == Steps{2, 4, 6});
  CHECK(steps.at("residual_rms/block.0") == Steps{0, 2, 4});
  CHECK(steps.at("config") == Steps{0, 4});
  CHECK(steps.at("mine/x") == Steps{2});
}
