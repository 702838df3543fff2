// Reference files against this implementation.
#include "normlab/lab/verify.h"

#include <algorithm>
#include <cmath>

#include "normlab/config/loader.h"
#include "normlab/nn/gpt.h"
#include "normlab/nn/weights.h"
#include "normlab/optim/optimizer.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace {

constexpr double kLargestError = sizeof(Real) == sizeof(double) ? kVerifyBoundDouble : kVerifyBoundFloat;
// A gradient entry below this share of the gradient norm is zero but for rounding.
constexpr double kRoundingShare = 1e-6;

struct Case {
  ModelConfig model;
  OptimizerConfig optimizer;
  Index vocab = 0;
  std::int64_t steps = 0;
  bool training = true;
};

// Takes `name` out of a mapping.
config::Yaml take(config::Yaml& mapping, std::string_view name, const std::string& source) {
  const auto found = std::ranges::find(mapping.children, name, &config::Yaml::key);
  check<ConfigError>(found != mapping.children.end(), source, ": the key ", name, " is missing");
  config::Yaml value = *found;
  mapping.children.erase(found);
  return value;
}

std::int64_t whole(const config::Yaml& value, const std::string& source) {
  const auto parsed = parse_int(value.text);
  check<ConfigError>(parsed.has_value(), source, ": ", value.key, " must be a whole number, got '", value.text, "'");
  return *parsed;
}

Case case_of(const Safetensors& file) {
  const std::string source = text(file.path(), " (config)");
  config::Yaml all = config::parse_yaml(file.metadata_at("config"), source);
  config::Yaml model = take(all, "model", source), optimizer = take(all, "optimizer", source);
  const config::Yaml mode = take(all, "mode", source);
  check<ConfigError>(mode.text == "train" || mode.text == "eval", source, ": mode '", mode.text,
                     "' is not train or eval");
  Case c;
  c.training = mode.text == "train";
  c.vocab = whole(take(model, "vocab_size", source), source);
  check<ConfigError>(c.vocab >= 1 && c.vocab <= 10000000, source, ": vocab_size is ", c.vocab,
                     "; from 1 to 10000000 are possible");
  c.steps = whole(take(optimizer, "steps", source), source);
  config::load(c.model, model, source);
  config::load(c.optimizer, optimizer, source);
  c.model.resolve();
  return c;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::fabs(value));
  return most;
}

// max |ours - theirs| / scale, infinite when something is not finite. Entries where `skip` holds are left to the
// caller.
template <class Skip>
double error_of(In ours, const std::vector<double>& theirs, double scale, Skip skip) {
  double worst = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    if (skip(i)) continue;
    const double difference = std::fabs(static_cast<double>(ours[i]) - theirs[i]);
    if (!std::isfinite(difference)) return HUGE_VAL;
    worst = std::max(worst, scale > 0 ? difference / scale : difference);
  }
  return worst;
}
double error_of(In ours, const std::vector<double>& theirs) {
  return error_of(ours, theirs, largest(theirs), [](std::size_t) { return false; });
}
double error_of(double ours, double theirs) { return std::fabs(ours - theirs) / std::fabs(theirs); }

// The numbers of a tensor whose size the configuration tells.
std::vector<double> numbers(const Safetensors& file, const std::string& name, std::size_t count) {
  std::vector<double> values = file.at(name).values<double>();
  check<DataError>(values.size() == count, file.path(), ": ", name, " has ", values.size(), " numbers and must have ",
                   count, "; the file is damaged: take it from its source again");
  return values;
}

class Comparison {
 public:
  Comparison(const Safetensors& file, VerifyReport& report) : file_(file), report_(report) {
    grad_norm_ = numbers(file, "grad_norm", 1)[0];
  }

  void add(double VerifyReport::*part, const std::string& name, double error) {
    report_.*part = std::max(report_.*part, error);
    if (!(error <= kLargestError) && report_.reason.empty()) report_.reason = text(name, " differs by ", error);
    if (!(error <= kLargestError)) report_.status = VerifyReport::Status::differs;
  }

  void gradient(const Named& parameter) {
    const std::string name = "grad." + parameter.name;
    std::vector<Real> ours(parameter.tensor.values().size(), Real(0));
    const std::vector<double> theirs = numbers(file_, name, ours.size());
    std::ranges::copy(parameter.tensor.grad(), ours.begin());
    add(&VerifyReport::grad, name,
        error_of(ours, theirs, largest(theirs), [&](std::size_t i) { return is_rounding(theirs[i]); }));
    add(&VerifyReport::grad, name,
        error_of(ours, theirs, grad_norm_, [&](std::size_t i) { return !is_rounding(theirs[i]); }));
  }

  void updated_parameter(const Named& parameter) {
    const In ours = parameter.tensor.values();
    const std::vector<double> gradient = numbers(file_, "grad." + parameter.name, ours.size());
    const std::string name = "after." + parameter.name;
    const std::vector<double> theirs = numbers(file_, name, ours.size());
    add(&VerifyReport::after, name,
        error_of(ours, theirs, largest(theirs), [&](std::size_t i) { return is_rounding(gradient[i]); }));
  }

  // A running mean follows biases whose gradient is rounding, so in float it says nothing.
  void updated_buffer(const Named& buffer) {
    if (sizeof(Real) != sizeof(double) && buffer.name.ends_with(".running_mean")) return;
    const std::string name = "after." + buffer.name;
    const In ours = buffer.tensor.values();
    add(&VerifyReport::after, name, error_of(ours, numbers(file_, name, ours.size())));
  }

 private:
  bool is_rounding(double gradient) const { return std::fabs(gradient) < kRoundingShare * grad_norm_; }

  const Safetensors& file_;
  VerifyReport& report_;
  double grad_norm_;
};

Batch batch_of(const Safetensors& file, Index vocab) {
  const StoredTensor& ids = file.at("input_ids");
  check<DataError>(ids.shape.size() == 2, file.path(), ": input_ids must have two axes");
  Batch batch{ids.shape[0], ids.shape[1], {}, {}, {}, {}};
  const std::vector<std::int64_t> tokens = ids.values<std::int64_t>(),
                                  targets = file.at("targets").values<std::int64_t>();
  check<DataError>(targets.size() == tokens.size(), file.path(), ": targets must have the shape of input_ids");
  const auto check_id = [&](const char* name, std::int64_t id) {
    check<DataError>(id >= 0 && id < vocab, file.path(), ": ", name, " holds ", id, "; ids from 0 to ", vocab - 1,
                     " are possible");
  };
  for (const std::int64_t id : tokens) {
    check_id("input_ids", id);
    batch.tokens.push_back(static_cast<std::int32_t>(id));
  }
  for (const std::int64_t id : targets) {
    batch.valid.push_back(id != kIgnore);
    if (batch.valid.back()) check_id("targets", id);
    batch.targets.push_back(static_cast<std::int32_t>(id));
  }
  check<DataError>(batch.target_count() > 0, file.path(), ": targets has no id to predict");
  return batch;
}

void compare(const Safetensors& file, const Case& c, VerifyReport& report) {
  const Gpt model(c.model, c.vocab, 0);
  load_tensors(model.store().parameters(), file, "param.");
  load_tensors(model.store().buffers(), file, "param.");
  Optimizer optimizer(c.optimizer, model.store());
  const Batch batch = batch_of(file, c.vocab);
  check<DataError>(batch.time <= c.model.context_length, file.path(), ": input_ids has rows of ", batch.time,
                   " ids, more than context_length, ", c.model.context_length);
  Comparison comparison(file, report);
  const std::vector<double> losses = numbers(file, "losses", static_cast<std::size_t>(c.steps));
  for (std::int64_t step = 1; step <= c.steps; ++step) {
    model.store().clear_gradients();
    Pass pass{.training = c.training};
    const Tensor logits = model.logits(batch, pass);
    const Tensor loss = ops::cross_entropy(logits, batch.targets, Real(1) / static_cast<Real>(batch.target_count()));
    backward(loss);
    const double grad_norm = gradient_norm(model.store());
    if (step == 1) {
      const std::size_t vocab = static_cast<std::size_t>(c.vocab);
      const std::vector<double> theirs = numbers(file, "logits", logits.values().size());
      comparison.add(
          &VerifyReport::logits, "logits",
          error_of(logits.values(), theirs, largest(theirs), [&](std::size_t i) { return !batch.valid[i / vocab]; }));
      for (const Named& parameter : model.store().parameters()) comparison.gradient(parameter);
      comparison.add(&VerifyReport::grad_norm, "grad_norm", error_of(grad_norm, numbers(file, "grad_norm", 1)[0]));
    }
    comparison.add(&VerifyReport::loss, text("the loss before step ", step),
                   error_of(static_cast<double>(loss.item()), losses[static_cast<std::size_t>(step - 1)]));
    optimizer.step(step, c.optimizer.lr, clip_coefficient(c.optimizer.grad_clip, grad_norm));
  }
  for (const Named& parameter : model.store().parameters()) comparison.updated_parameter(parameter);
  for (const Named& buffer : model.store().buffers()) comparison.updated_buffer(buffer);
}

}  // namespace

VerifyReport verify_file(const std::string& path) {
  VerifyReport report;
  try {
    const Safetensors file = Safetensors::read(path);
    compare(file, case_of(file), report);
  } catch (const UserError& error) {
    report.status = VerifyReport::Status::refused;
    report.reason = error.what();
  }
  return report;
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
