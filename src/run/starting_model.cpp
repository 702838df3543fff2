// Weights from another model, and what takes the place of norms that are taken out.
#include "normlab/run/starting_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "normlab/base/check.h"
#include "normlab/base/parallel.h"
#include "normlab/config/loader.h"
#include "normlab/interop/hugging_face.h"
#include "normlab/run/checkpoint.h"
#include "normlab/train/block_probe.h"

namespace normlab {
namespace {

constexpr std::int64_t kDeviationBatches = 8;

// Means over tokens of the deviation over channels of what enters each norm.
class DeviationProbe : public Probe {
 public:
  explicit DeviationProbe(bool centred) : centred_(centred) {}
  void see(Site, Index, const Tensor&, Mask) override {}
  void see_norm(const std::string& name, const Tensor& x, Mask mask) override {
    Sum& sum = sums_[name];
    for_real_rows(x, mask, [&](In row) {
      sum.deviations += deviation(row);
      sum.tokens += 1;
    });
  }
  // 1 where no norm of that name was met.
  double mean(const std::string& name) const {
    const auto found = sums_.find(name);
    return found == sums_.end() ? 1 : found->second.deviations / found->second.tokens;
  }

 private:
  struct Sum {
    double deviations = 0, tokens = 0;
  };
  double deviation(In values) const {
    const auto count = static_cast<double>(values.size());
    double mean = 0, squares = 0;
    for (const Real value : values) mean += centred_ ? static_cast<double>(value) / count : 0;
    for (const Real value : values) {
      const double from_mean = static_cast<double>(value) - mean;
      squares += from_mean * from_mean / count;
    }
    return std::sqrt(squares);
  }

  bool centred_;
  std::map<std::string, Sum> sums_;
};

void set_deviations(const Gpt& model, const Gpt& from, const RunConfig& config, const Dataset& data) {
  DeviationProbe probe(spec_of(from.config().norm).centred);
  with_team([&] {
    const WithoutGraph without_graph;
    for (std::int64_t step = 1; step <= kDeviationBatches; ++step) {
      const Batch batch = data.train_batch(step, 0, config.train.batch_size);
      Pass pass{.probe = &probe};
      from.hidden(batch, pass);
    }
  });
  for (const Named& buffer : model.store().buffers()) {
    const std::size_t dot = buffer.name.rfind('.');
    if (buffer.name.substr(dot + 1) == "deviation")
      buffer.tensor.values()[0] = static_cast<Real>(probe.mean(buffer.name.substr(0, dot)));
  }
}

bool may_differ(std::string_view path) {
  return path.starts_with("model.norm") || path == "model.from" || path == "model.dropout" || path == "model.init" ||
         path == "model.embed_std";
}

void refuse_other_model(const std::string& path, const ModelConfig& from, const ModelConfig& to) {
  RunConfig left, right;
  left.model = from;
  right.model = to;
  for (const config::Difference& difference : config::differences(left, right))
    check<ConfigError>(may_differ(difference.path), "model.from: ", path, " has ", difference.path, " ",
                       difference.left, ", and this configuration ", difference.right,
                       "; only norms and dropout may differ");
}

// Its default is what says nothing about the tokenizer.
void refuse_other_tokenizer(const std::string& path, const std::string& from, const std::string& to) {
  check<ConfigError>(to == from || to == DataConfig{}.tokenizer, "model.from: ", path, " has data.tokenizer ", from,
                     ", which its words belong to, and this configuration ", to, "; leave data.tokenizer out");
}

StartingPoint read_hugging_face(RunConfig& config) {
  const std::string& folder = *config.model.from;
  StartingPoint start{hugging_face_model(folder), std::nullopt};
  const ModelConfig& theirs = start.model.config();
  refuse_other_model(folder, theirs, config.model);
  check<ConfigError>(theirs.norm != config.model.norm || theirs.norm_eps == config.model.norm_eps,
                     "model.from: ", folder, " has model.norm_eps ", theirs.norm_eps, ", and this configuration ",
                     config.model.norm_eps, "; give its own");
  const std::string tokenizer = folder + "/tokenizer.json";
  if (std::filesystem::exists(std::filesystem::symlink_status(tokenizer))) {
    refuse_other_tokenizer(folder, tokenizer, config.data.tokenizer);
    config.data.tokenizer = tokenizer;
  }
  return start;
}

}  // namespace

std::optional<StartingPoint> read_starting_point(RunConfig& config) {
  if (!config.model.from) return std::nullopt;
  if (is_hugging_face(*config.model.from)) return read_hugging_face(config);
  const Checkpoint checkpoint(checkpoint_path(*config.model.from));
  refuse_other_model(checkpoint.path(), checkpoint.config().model, config.model);
  const DataConfig& data = checkpoint.config().data;
  refuse_other_tokenizer(checkpoint.path(), data.tokenizer, config.data.tokenizer);
  config.data.tokenizer = data.tokenizer;
  config.data.vocab_size = data.vocab_size;
  return StartingPoint{checkpoint.model(), checkpoint.tokenizer()};
}

Gpt starting_model(const RunConfig& config, const Dataset& data, std::optional<StartingPoint> start) {
  const std::int64_t vocab_size = data.tokenizer().vocab_size();
  Gpt model(config.model, vocab_size, static_cast<std::uint64_t>(config.seed));
  if (!start) return model;
  const Gpt& from = start->model;
  check<ConfigError>(from.vocab_size() == vocab_size, "model.from: ", *config.model.from, " has a vocabulary of ",
                     from.vocab_size(), ", and data.tokenizer one of ", vocab_size,
                     "; name the tokenizer it was trained with");
  for (const auto group : {&ParameterStore::parameters, &ParameterStore::buffers})
    for (const Named& to : (model.store().*group)()) {
      const auto found = std::ranges::find((from.store().*group)(), to.name, &Named::name);
      if (found != (from.store().*group)().end() && found->tensor.shape() == to.tensor.shape())
        std::ranges::copy(found->tensor.values(), to.tensor.values().begin());
    }
  if (config.model.norm == NormKind::fixed && from.config().norm != NormKind::fixed)
    set_deviations(model, from, config, data);
  return model;
}

}  // namespace normlab
