// A model in the layouts of transformers: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023).
#include <map>
#include <tuple>
#include <utility>

#include "export_files.h"
#include "normlab/config/fields.h"
#include "normlab/interop/export.h"
#include "normlab/interop/hugging_face.h"

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

  void add(const Counterpart& each) {
    const auto found = ours_.find(each.ours);
    std::vector<float> values(static_cast<std::size_t>(each.shape.numel()), 0);  // a bias that the model has not
    if (found != ours_.end()) {
      const std::span<const Real> ours = found->second.values();
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(ours[each.index(i)]);
    }
    theirs_.emplace_back(each.theirs, std::vector<std::int64_t>(each.shape.begin(), each.shape.end()),
                         std::move(values));
  }

  std::vector<StoredTensor> stored() const {
    std::vector<StoredTensor> all;
    for (const auto& [name, shape, values] : theirs_)
      all.push_back(normlab::stored(name, shape, std::span<const float>(values)));
    return all;
  }

 private:
  std::map<std::string, Tensor> ours_;
  std::vector<std::tuple<std::string, std::vector<std::int64_t>, std::vector<float>>> theirs_;
};

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

void export_hugging_face(const TrainedModel& trained, const std::string& directory) {
  const ModelConfig& c = trained.config.model;
  const std::vector<Obstacle> gpt2 = to_gpt2(c), llama = to_llama(c);
  const bool as_llama = llama.size() < gpt2.size();
  const std::vector<Obstacle>& obstacles = as_llama ? llama : gpt2;
  check<ConfigError>(obstacles.empty(), "export: this model is none that ", as_llama ? "Llama" : "GPT-2",
                     " can express: ", listed(obstacles), ". --to pytorch takes every model");
  const std::int64_t vocab_size = trained.tokenizer.vocab_size();
  Tensors tensors(trained.model);
  for (const Counterpart& each : as_llama ? llama_counterparts(c, vocab_size) : gpt2_counterparts(c, vocab_size))
    tensors.add(each);
  Json config = as_llama ? llama_config(c) : gpt2_config(c);
  add_shared(config, c, vocab_size);
  const Json tokenizer_config = Json::object({{"tokenizer_class", "PreTrainedTokenizerFast"},
                                              {"model_max_length", c.context_length},
                                              {"clean_up_tokenization_spaces", false}});
  write_export(
      directory, tensors.stored(), trained.tokenizer,
      {{"config.json", config.indented() + "\n"}, {"tokenizer_config.json", tokenizer_config.indented() + "\n"}});
}

}  // namespace normlab
