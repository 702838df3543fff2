// The layouts of transformers: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023).
#include "normlab/interop/hugging_face.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "normlab/base/check.h"
#include "normlab/formats/json.h"
#include "normlab/formats/safetensors.h"
#include "normlab/host/files.h"

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
  explicit ConfigJson(const std::string& path) : ConfigJson(path, parse_json(read_file(path), path)) {}
  ConfigJson(std::string place, Json json) : path_(std::move(place)), json_(std::move(json)) {
    check<DataError>(json_.is_object(), path_, ": an object of settings is expected");
  }

  const Json* find(std::string_view name) const {
    const Json* value = json_.find(name);
    return value && !value->is_null() ? value : nullptr;
  }
  std::string text_of(std::string_view name, std::string_view otherwise) const {
    return value_or(name, std::string(otherwise), [](const Json& value) { return value.string(); });
  }
  std::int64_t size(std::string_view name, std::int64_t most = 1000000) const {
    check<DataError>(find(name), path_, ": ", name, " is missing; is it the config.json of GPT-2 or Llama?");
    const std::int64_t value = value_or(name, std::int64_t{0}, [](const Json& json) { return json.integer(); });
    check<DataError>(value >= 1 && value <= most, path_, ": ", name, " is ", value, "; from 1 to ", most,
                     " are possible");
    return value;
  }
  double real(std::string_view name, double otherwise) const {
    return value_or(name, otherwise, [](const Json& value) { return value.real(); });
  }
  bool flag(std::string_view name, bool otherwise) const {
    return value_or(name, otherwise, [](const Json& value) { return value.boolean(); });
  }
  ConfigJson section(std::string_view name) const { return {text(path_, ": ", name), json_.at(name)}; }
  void need(bool is_met, std::string_view name, std::string_view wanted) const {
    const Json* value = find(name);
    check<DataError>(is_met, path_, ": ", name, " is ", value ? value->line() : "missing", "; models here have ",
                     wanted);
  }

 private:
  template <class T, class Read>
  T value_or(std::string_view name, T otherwise, Read read) const {
    const Json* value = find(name);
    if (!value) return otherwise;
    try {
      return read(*value);
    } catch (const DataError& error) {
      throw DataError(text(path_, ": ", name, ": ", error.what()));
    }
  }

  std::string path_;
  Json json_;
};

ModelConfig gpt2_model(const ConfigJson& json) {
  ModelConfig c;
  c.n_layers = json.size("n_layer", 10000);
  c.n_heads = json.size("n_head");
  c.d_model = json.size("n_embd");
  if (json.find("n_inner")) c.d_ff = json.size("n_inner");
  c.context_length = json.size("n_positions");
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
  c.n_layers = json.size("num_hidden_layers", 10000);
  c.n_heads = json.size("num_attention_heads");
  c.d_model = json.size("hidden_size");
  c.d_ff = json.size("intermediate_size");
  c.context_length = json.size("max_position_embeddings");
  json.need(json.text_of("hidden_act", "silu") == "silu", "hidden_act", "silu");
  json.need(!json.find("num_key_value_heads") || json.size("num_key_value_heads") == c.n_heads, "num_key_value_heads",
            "as many as num_attention_heads");
  json.need(!json.find("head_dim") || json.size("head_dim") * c.n_heads == c.d_model, "head_dim",
            "hidden_size / num_attention_heads");
  for (const char* name : {"rope_scaling", "sliding_window", "quantization_config"})
    json.need(!json.find(name), name, "none");
  json.need(json.real("partial_rotary_factor", 1) == 1, "partial_rotary_factor", "1");
  json.need(!json.flag("attention_bias", false), "attention_bias", "false");
  json.need(!json.flag("mlp_bias", false), "mlp_bias", "false");
  c.norm_eps = json.real("rms_norm_eps", 1e-6);
  const ConfigJson rope = json.find("rope_parameters") ? json.section("rope_parameters") : json;  // transformers 5
  c.rope_base = rope.real("rope_theta", 10000);
  rope.need(rope.text_of("rope_type", "default") == "default", "rope_type", "default");
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

namespace {

// GPT-2's own files leave out the first word.
std::string_view short_name(std::string_view name) {
  constexpr std::string_view kPrefix = "transformer.";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

// What files may hold besides the weights: masks, frequencies, and the head that is the embedding.
bool is_known_extra(std::string_view name, const ModelConfig& config) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with(".inv_freq") ||
         (config.tie_embeddings && name == "lm_head.weight");
}

void check_tied(const std::string& path, const StoredTensor& head, const StoredTensor& embedding) {
  const bool same_bytes = head.dtype == embedding.dtype && head.bytes == embedding.bytes;
  check<DataError>(head.shape == embedding.shape && (same_bytes || head.values<double>() == embedding.values<double>()),
                   path, ": ", head.name, " differs from ", embedding.name,
                   ", but by config.json (tie_word_embeddings) they are one; set tie_word_embeddings to false there to "
                   "keep both, or take ",
                   head.name, " out of the file");
}

// The tensor of each counterpart, in their order, before any model is built: the file decides how large it may be.
std::vector<const StoredTensor*> matched(const Safetensors& file, const std::vector<Counterpart>& all,
                                         const ModelConfig& config) {
  std::map<std::string_view, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : file.tensors())
    check<DataError>(by_name.emplace(short_name(tensor.name), &tensor).second, file.path(), ": ", tensor.name,
                     " is there twice, with the word transformer and without it; leave one out");
  std::vector<const StoredTensor*> found;
  for (const Counterpart& each : all) {
    const auto entry = by_name.find(short_name(each.theirs));
    check<DataError>(entry != by_name.end(), file.path(), ": no tensor ", each.theirs,
                     ", which config.json asks for; the two files do not belong together");
    const StoredTensor& tensor = *entry->second;
    check<DataError>(std::ranges::equal(tensor.shape, each.shape), file.path(), ": ", each.theirs,
                     " has another shape than ", each.shape,
                     ", which config.json asks for; the two files do not belong together");
    check<DataError>(tensor.dtype == Dtype::F32 || tensor.dtype == Dtype::F64, file.path(), ": ", each.theirs,
                     " is of the type ", to_string(tensor.dtype), "; save the model in F32");
    found.push_back(&tensor);
    by_name.erase(entry);
  }
  for (const auto& [name, tensor] : by_name) {
    check<DataError>(is_known_extra(name, config), file.path(), ": ", tensor->name,
                     " has no place in a model here, which would be another one without it; the folder cannot be used");
    if (name == "lm_head.weight") check_tied(file.path(), *tensor, *found[0]);
  }
  return found;
}

}  // namespace

Gpt hugging_face_model(const std::string& directory) {
  const ConfigJson json(config_path(directory));
  const std::string type = json.text_of("model_type", "");
  json.need(type == "gpt2" || type == "llama", "model_type", "gpt2 or llama");
  ModelConfig config = type == "gpt2" ? gpt2_model(json) : llama_model(json);
  config.resolve();
  const std::int64_t vocab_size = json.size("vocab_size", 10000000);
  const Safetensors file = Safetensors::read(weights_path(directory));
  const std::vector<Counterpart> all =
      type == "gpt2" ? gpt2_counterparts(config, vocab_size) : llama_counterparts(config, vocab_size);
  const std::vector<const StoredTensor*> tensors = matched(file, all, config);
  Gpt model(config, vocab_size, 0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto ours = std::ranges::find(model.store().parameters(), all[i].ours, &Named::name);
    const std::vector<Real> values = tensors[i]->values<Real>();
    for (std::size_t v = 0; v < values.size(); ++v) {
      check<DataError>(std::isfinite(values[v]), file.path(), ": ", all[i].theirs,
                       " holds a number that is not finite");
      ours->tensor.values()[all[i].index(v)] = values[v];
    }
  }
  return model;
}

}  // namespace normlab
