// The layouts of transformers: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023).
#include "hugging_face.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "normlab/base/check.h"
#include "normlab/base/files.h"
#include "normlab/data/tokenizer_json.h"
#include "normlab/formats/json.h"
#include "normlab/formats/safetensors.h"

namespace normlab {
namespace {

std::string weights_path(const std::string& directory) { return directory + "/model.safetensors"; }
std::string config_path(const std::string& directory) { return directory + "/config.json"; }

void add_head(const ModelConfig& c, std::int64_t vocab_size, std::vector<Counterpart>& all) {
  if (!c.tie_embeddings) all.push_back({"head.weight", "lm_head.weight", {vocab_size, c.d_model}});
}

// A config.json, whose missing keys mean the defaults of transformers.
class ConfigJson {
 public:
  explicit ConfigJson(const std::string& path) : path_(path), json_(parse_json(read_file(path), path)) {}

  const Json* find(std::string_view name) const {
    const Json* value = json_.find(name);
    return value && !value->is_null() ? value : nullptr;
  }
  std::string text_of(std::string_view name, std::string_view otherwise) const {
    const Json* value = find(name);
    return value ? value->string() : std::string(otherwise);
  }
  std::int64_t integer(std::string_view name) const {
    const Json* value = find(name);
    check<DataError>(value, path_, ": '", name, "' is missing");
    return value->integer();
  }
  double real(std::string_view name, double otherwise) const {
    const Json* value = find(name);
    return value ? value->real() : otherwise;
  }
  bool flag(std::string_view name, bool otherwise) const {
    const Json* value = find(name);
    return value ? value->boolean() : otherwise;
  }
  void need(bool is_met, std::string_view name, std::string_view wanted) const {
    const Json* value = find(name);
    check<DataError>(is_met, path_, ": ", name, " is ", value ? value->line() : "missing", "; models here have ",
                     wanted);
  }

 private:
  std::string path_;
  Json json_;
};

ModelConfig gpt2_model(const ConfigJson& json) {
  ModelConfig c;
  c.n_layers = json.integer("n_layer");
  c.n_heads = json.integer("n_head");
  c.d_model = json.integer("n_embd");
  if (json.find("n_inner")) c.d_ff = json.integer("n_inner");
  c.context_length = json.integer("n_positions");
  const std::string activation = json.text_of("activation_function", "gelu_new");
  json.need(
      activation == "gelu_new" || activation == "gelu_pytorch_tanh" || activation == "gelu" || activation == "relu",
      "activation_function", "gelu_new, gelu or relu");
  c.activation = activation == "gelu"   ? MlpActivation::gelu
                 : activation == "relu" ? MlpActivation::relu
                                        : MlpActivation::gelu_tanh;
  json.need(json.flag("scale_attn_weights", true), "scale_attn_weights", "true");
  json.need(!json.flag("scale_attn_by_inverse_layer_idx", false), "scale_attn_by_inverse_layer_idx", "false");
  json.need(!json.flag("add_cross_attention", false), "add_cross_attention", "false");
  c.norm_eps = json.real("layer_norm_epsilon", 1e-5);
  c.dropout = json.real("resid_pdrop", 0.1);
  c.tie_embeddings = json.flag("tie_word_embeddings", true);
  return c;
}

ModelConfig llama_model(const ConfigJson& json) {
  ModelConfig c;
  c.norm = NormKind::rms;
  c.position = Position::rope;
  c.activation = MlpActivation::swiglu;
  c.bias = false;
  c.n_layers = json.integer("num_hidden_layers");
  c.n_heads = json.integer("num_attention_heads");
  c.d_model = json.integer("hidden_size");
  c.d_ff = json.integer("intermediate_size");
  c.context_length = json.integer("max_position_embeddings");
  json.need(json.text_of("hidden_act", "silu") == "silu", "hidden_act", "silu");
  json.need(!json.find("num_key_value_heads") || json.integer("num_key_value_heads") == c.n_heads,
            "num_key_value_heads", "as many as num_attention_heads");
  json.need(!json.find("head_dim") || json.integer("head_dim") * c.n_heads == c.d_model, "head_dim",
            "hidden_size / num_attention_heads");
  json.need(!json.find("rope_scaling"), "rope_scaling", "none");
  json.need(!json.flag("attention_bias", false), "attention_bias", "false");
  json.need(!json.flag("mlp_bias", false), "mlp_bias", "false");
  c.norm_eps = json.real("rms_norm_eps", 1e-6);
  const Json* rope = json.find("rope_parameters");  // transformers 5 keeps it there
  const Json* base = rope ? rope->find("rope_theta") : json.find("rope_theta");
  c.rope_base = base ? base->real() : 10000;
  if (const Json* type = rope ? rope->find("rope_type") : nullptr)
    json.need(type->string() == "default", "rope_parameters", "the rope_type default");
  c.tie_embeddings = json.flag("tie_word_embeddings", false);
  return c;
}

}  // namespace

// Conv1D keeps [in, out].
std::vector<Counterpart> gpt2_counterparts(const ModelConfig& c, std::int64_t vocab_size) {
  const Index d = c.d_model;
  std::vector<Counterpart> all = {{"tok_embed.weight", "transformer.wte.weight", {vocab_size, d}},
                                  {"pos_embed.weight", "transformer.wpe.weight", {c.context_length, d}}};
  const auto norm = [&](const std::string& ours, const std::string& theirs) {
    for (const char* part : {".weight", ".bias"}) all.push_back({ours + part, theirs + part, {d}});
  };
  const auto layer = [&](const std::string& ours, const std::string& theirs, Index in, Index out) {
    all.push_back({ours + ".weight", theirs + ".weight", {in, out}, 0, true});
    all.push_back({ours + ".bias", theirs + ".bias", {out}});
  };
  for (Index i = 0; i < c.n_layers; ++i) {
    const std::string ours = text("blocks.", i, '.'), theirs = text("transformer.h.", i, '.');
    norm(ours + "attn_norm", theirs + "ln_1");
    norm(ours + "mlp_norm", theirs + "ln_2");
    layer(ours + "attn.qkv", theirs + "attn.c_attn", d, 3 * d);
    layer(ours + "attn.out", theirs + "attn.c_proj", d, d);
    layer(ours + "mlp.up", theirs + "mlp.c_fc", d, *c.d_ff);
    layer(ours + "mlp.down", theirs + "mlp.c_proj", *c.d_ff, d);
  }
  norm("final_norm", "transformer.ln_f");
  add_head(c, vocab_size, all);
  return all;
}

// Our rotation of halves is that of transformers: no row changes its place.
std::vector<Counterpart> llama_counterparts(const ModelConfig& c, std::int64_t vocab_size) {
  const Index d = c.d_model;
  std::vector<Counterpart> all = {{"tok_embed.weight", "model.embed_tokens.weight", {vocab_size, d}}};
  for (Index i = 0; i < c.n_layers; ++i) {
    const std::string ours = text("blocks.", i, '.'), theirs = text("model.layers.", i, '.');
    const char* parts[] = {"q", "k", "v"};
    for (Index part = 0; part < 3; ++part)
      all.push_back(
          {ours + "attn.qkv.weight", text(theirs, "self_attn.", parts[part], "_proj.weight"), {d, d}, part * d * d});
    all.push_back({ours + "attn.out.weight", theirs + "self_attn.o_proj.weight", {d, d}});
    for (const char* matrix : {"gate", "up"})
      all.push_back(
          {text(ours, "mlp.", matrix, ".weight"), text(theirs, "mlp.", matrix, "_proj.weight"), {*c.d_ff, d}});
    all.push_back({ours + "mlp.down.weight", theirs + "mlp.down_proj.weight", {d, *c.d_ff}});
    all.push_back({ours + "attn_norm.weight", theirs + "input_layernorm.weight", {d}});
    all.push_back({ours + "mlp_norm.weight", theirs + "post_attention_layernorm.weight", {d}});
  }
  all.push_back({"final_norm.weight", "model.norm.weight", {d}});
  add_head(c, vocab_size, all);
  return all;
}

bool is_hugging_face(const std::string& directory) { return std::filesystem::exists(config_path(directory)); }

std::optional<Tokenizer> hugging_face_tokenizer(const std::string& directory) {
  const std::string path = directory + "/tokenizer.json";
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_tokenizer_json(read_file(path), path);
}

Gpt hugging_face_model(const std::string& directory) {
  const ConfigJson json(config_path(directory));
  const std::string type = json.text_of("model_type", "");
  json.need(type == "gpt2" || type == "llama", "model_type", "gpt2 or llama");
  ModelConfig config = type == "gpt2" ? gpt2_model(json) : llama_model(json);
  config.resolve();
  const std::int64_t vocab_size = json.integer("vocab_size");
  const Safetensors file = Safetensors::read(weights_path(directory));
  Gpt model(config, vocab_size, 0);
  for (const Counterpart& each :
       type == "gpt2" ? gpt2_counterparts(config, vocab_size) : llama_counterparts(config, vocab_size)) {
    // GPT-2's own files leave out the first word.
    constexpr std::string_view kPrefix = "transformer.";
    const auto named = [&](const StoredTensor& tensor) {
      return tensor.name == each.theirs ||
             (each.theirs.starts_with(kPrefix) && tensor.name == each.theirs.substr(kPrefix.size()));
    };
    const auto tensor = std::ranges::find_if(file.tensors(), named);
    check<DataError>(tensor != file.tensors().end(), file.path(), ": no tensor ", each.theirs,
                     ", which config.json asks for");
    check<DataError>(std::ranges::equal(tensor->shape, each.shape), file.path(), ": ", each.theirs,
                     " has another shape than ", each.shape, ", which config.json asks for");
    const auto ours = std::ranges::find(model.store().parameters(), each.ours, &Named::name);
    const std::vector<Real> values = tensor->values<Real>();
    for (std::size_t i = 0; i < values.size(); ++i) ours->tensor.values()[each.index(i)] = values[i];
  }
  return model;
}

}  // namespace normlab
