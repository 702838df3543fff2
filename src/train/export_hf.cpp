// A model in the layouts of transformers: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023).
#include <map>
#include <tuple>
#include <utility>

#include "export_files.h"
#include "normlab/base/files.h"
#include "normlab/config/fields.h"
#include "normlab/train/export.h"

namespace normlab {
namespace {

// A key whose value a layout cannot express.
struct Obstacle {
  std::string key, value, wanted;
};

std::string listed(const std::vector<Obstacle>& obstacles) {
  std::string out;
  for (const Obstacle& each : obstacles)
    out += text(out.empty() ? "" : "; ", each.key, " is ", each.value, " and must be ", each.wanted);
  return out;
}

std::vector<Obstacle> shared_obstacles(const ModelConfig& c, NormKind norm, Position position) {
  std::vector<Obstacle> found;
  const auto need = [&](bool is_met, const char* key, std::string_view value, std::string_view wanted) {
    if (!is_met) found.push_back({key, std::string(value), std::string(wanted)});
  };
  need(c.norm == norm, "model.norm", config::to_string(c.norm), config::to_string(norm));
  need(c.placement == Placement::pre, "model.placement", config::to_string(c.placement), "pre");
  need(c.position == position, "model.position", config::to_string(c.position), config::to_string(position));
  return found;
}

std::vector<Obstacle> to_gpt2(const ModelConfig& c) {
  std::vector<Obstacle> found = shared_obstacles(c, NormKind::layer, Position::learned);
  if (c.activation == MlpActivation::swiglu) found.push_back({"model.activation", "swiglu", "gelu, gelu_tanh or relu"});
  return found;
}

std::vector<Obstacle> to_llama(const ModelConfig& c) {
  std::vector<Obstacle> found = shared_obstacles(c, NormKind::rms, Position::rope);
  if (c.activation != MlpActivation::swiglu)
    found.push_back({"model.activation", std::string(config::to_string(c.activation)), "swiglu"});
  if (c.bias) found.push_back({"model.bias", "true", "false"});
  return found;
}

// The tensors of a folder, each with numbers of its own.
class Tensors {
 public:
  explicit Tensors(const Gpt& model) {
    for (const Named& named : model.store().parameters()) ours_.emplace(named.name, named.tensor);
  }

  void same(const std::string& ours, const std::string& theirs) {
    const Tensor& tensor = ours_.at(ours);
    add(theirs, {tensor.shape().begin(), tensor.shape().end()}, {tensor.values().begin(), tensor.values().end()});
  }
  // [out, in] as [in, out]
  void transposed(const std::string& ours, const std::string& theirs) {
    const Tensor& tensor = ours_.at(ours);
    const Index out = tensor.shape()[0], in = tensor.shape()[1];
    std::vector<float> values;
    for (Index i = 0; i < in; ++i)
      for (Index o = 0; o < out; ++o) values.push_back(tensor.values()[static_cast<std::size_t>(o * in + i)]);
    add(theirs, {in, out}, std::move(values));
  }
  // Rows first .. first + count of a matrix.
  void rows(const std::string& ours, Index first, Index count, const std::string& theirs) {
    const Tensor& tensor = ours_.at(ours);
    const Index in = tensor.shape()[1];
    const auto part =
        tensor.values().subspan(static_cast<std::size_t>(first * in), static_cast<std::size_t>(count * in));
    add(theirs, {count, in}, {part.begin(), part.end()});
  }
  // A bias, or zeros where the model has none.
  void bias(const std::string& ours, Index size, const std::string& theirs) {
    if (ours_.contains(ours)) return same(ours, theirs);
    add(theirs, {size}, std::vector<float>(static_cast<std::size_t>(size), 0));
  }

  std::vector<StoredTensor> stored() const {
    std::vector<StoredTensor> all;
    for (const auto& [name, entry] : theirs_)
      all.push_back(normlab::stored(name, entry.first, std::span<const float>(entry.second)));
    return all;
  }

 private:
  void add(const std::string& name, std::vector<std::int64_t> shape, std::vector<float> values) {
    theirs_[name] = {std::move(shape), std::move(values)};
  }

  std::map<std::string, Tensor> ours_;
  std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<float>>> theirs_;
};

// GPT-2's Conv1D keeps [in, out], and every layer and norm has a bias.
void add_gpt2(const ModelConfig& c, Tensors& tensors) {
  const Index d = c.d_model;
  tensors.same("tok_embed.weight", "transformer.wte.weight");
  tensors.same("pos_embed.weight", "transformer.wpe.weight");
  for (Index i = 0; i < c.n_layers; ++i) {
    const std::string ours = text("blocks.", i, '.'), theirs = text("transformer.h.", i, '.');
    const std::pair<const char*, const char*> norms[] = {{"attn_norm", "ln_1"}, {"mlp_norm", "ln_2"}};
    for (const auto& [from, to] : norms) {
      tensors.same(text(ours, from, ".weight"), text(theirs, to, ".weight"));
      tensors.bias(text(ours, from, ".bias"), d, text(theirs, to, ".bias"));
    }
    const std::tuple<const char*, const char*, Index> layers[] = {{"attn.qkv", "attn.c_attn", 3 * d},
                                                                  {"attn.out", "attn.c_proj", d},
                                                                  {"mlp.up", "mlp.c_fc", *c.d_ff},
                                                                  {"mlp.down", "mlp.c_proj", d}};
    for (const auto& [from, to, out] : layers) {
      tensors.transposed(text(ours, from, ".weight"), text(theirs, to, ".weight"));
      tensors.bias(text(ours, from, ".bias"), out, text(theirs, to, ".bias"));
    }
  }
  tensors.same("final_norm.weight", "transformer.ln_f.weight");
  tensors.bias("final_norm.bias", d, "transformer.ln_f.bias");
}

// Our rotation of halves is that of transformers: no row changes its place.
void add_llama(const ModelConfig& c, Tensors& tensors) {
  const Index d = c.d_model;
  tensors.same("tok_embed.weight", "model.embed_tokens.weight");
  for (Index i = 0; i < c.n_layers; ++i) {
    const std::string ours = text("blocks.", i, '.'), theirs = text("model.layers.", i, '.');
    const char* parts[] = {"q", "k", "v"};
    for (Index part = 0; part < 3; ++part)
      tensors.rows(ours + "attn.qkv.weight", part * d, d, text(theirs, "self_attn.", parts[part], "_proj.weight"));
    tensors.same(ours + "attn.out.weight", theirs + "self_attn.o_proj.weight");
    for (const char* matrix : {"gate", "up", "down"})
      tensors.same(text(ours, "mlp.", matrix, ".weight"), text(theirs, "mlp.", matrix, "_proj.weight"));
    tensors.same(ours + "attn_norm.weight", theirs + "input_layernorm.weight");
    tensors.same(ours + "mlp_norm.weight", theirs + "post_attention_layernorm.weight");
  }
  tensors.same("final_norm.weight", "model.norm.weight");
}

std::string_view gpt2_activation(MlpActivation activation) {
  if (activation == MlpActivation::gelu_tanh) return "gelu_new";
  return activation == MlpActivation::gelu ? "gelu" : "relu";
}

Json gpt2_config(const ModelConfig& c) {
  return Json::object({{"model_type", "gpt2"},
                       {"architectures", Json::array({"GPT2LMHeadModel"})},
                       {"n_positions", c.context_length},
                       {"n_embd", c.d_model},
                       {"n_layer", c.n_layers},
                       {"n_head", c.n_heads},
                       {"n_inner", *c.d_ff},
                       {"activation_function", gpt2_activation(c.activation)},
                       {"embd_pdrop", c.dropout},
                       {"attn_pdrop", c.dropout},
                       {"resid_pdrop", c.dropout},
                       {"layer_norm_epsilon", c.norm_eps}});
}

Json llama_config(const ModelConfig& c) {
  return Json::object({{"model_type", "llama"},
                       {"architectures", Json::array({"LlamaForCausalLM"})},
                       {"max_position_embeddings", c.context_length},
                       {"hidden_size", c.d_model},
                       {"intermediate_size", *c.d_ff},
                       {"num_hidden_layers", c.n_layers},
                       {"num_attention_heads", c.n_heads},
                       {"num_key_value_heads", c.n_heads},
                       {"hidden_act", "silu"},
                       {"attention_bias", false},
                       {"mlp_bias", false},
                       {"attention_dropout", c.dropout},
                       {"rms_norm_eps", c.norm_eps},
                       {"rope_theta", c.rope_base}});
}

// What both have. No token begins or ends a text.
void add_shared(Json& json, const ModelConfig& c, std::int64_t vocab_size) {
  json.set("vocab_size", vocab_size);
  json.set("tie_word_embeddings", c.tie_embeddings);
  json.set("initializer_range", *c.embed_std);
  json.set("torch_dtype", "float32");
  for (const char* token : {"bos_token_id", "eos_token_id", "pad_token_id"}) json.set(token, nullptr);
}

}  // namespace

void export_hugging_face(const Checkpoint& checkpoint, const std::string& directory) {
  const ModelConfig& c = checkpoint.config().model;
  const std::vector<Obstacle> gpt2 = to_gpt2(c), llama = to_llama(c);
  const bool as_llama = llama.size() < gpt2.size();
  const std::vector<Obstacle>& obstacles = as_llama ? llama : gpt2;
  check<ConfigError>(obstacles.empty(), "export: this model is none that ", as_llama ? "Llama" : "GPT-2",
                     " can express: ", listed(obstacles), ". --to pytorch takes every model");
  Tensors tensors(checkpoint.model());
  as_llama ? add_llama(c, tensors) : add_gpt2(c, tensors);
  if (!c.tie_embeddings) tensors.same("head.weight", "lm_head.weight");
  Json config = as_llama ? llama_config(c) : gpt2_config(c);
  add_shared(config, c, checkpoint.tokenizer().vocab_size());
  const Json tokenizer_config = Json::object({{"tokenizer_class", "PreTrainedTokenizerFast"},
                                              {"model_max_length", c.context_length},
                                              {"clean_up_tokenization_spaces", false}});
  make_export_directory(directory);
  write_safetensors(text(directory, "/model.safetensors"), {{"format", "pt"}}, tensors.stored());
  write_file(text(directory, "/config.json"), config.indented() + "\n");
  write_file(text(directory, "/tokenizer.json"), tokenizer_json(checkpoint.tokenizer()));
  write_file(text(directory, "/tokenizer_config.json"), tokenizer_config.indented() + "\n");
}

}  // namespace normlab
