// Texts about a run.
#include "normlab/run/start_report.h"

#include <cmath>

#include "normlab/base/utf8.h"
#include "normlab/optim/optimizer.h"
#include "normlab/run/memory_estimate.h"

namespace normlab {
namespace {

std::string unit(const DataConfig& data) { return data.tokenizer == "char" ? "character" : "token"; }

// What the norm lets a position see that a causal model should not know.
std::string leak_of(const ModelConfig& model, EvalStatistics statistics) {
  const NormSpec spec = spec_of(norm_of(model));
  const Sight training = sight_in_training(spec);
  if (!training) return {};
  const char* what = training.later_positions && training.other_samples ? "later positions and other samples"
                     : training.later_positions                         ? "later positions of its sample"
                                                                        : "other samples";
  std::string out = text("\nnote: with model.norm ", config::to_string(model.norm), " a position sees ", what);
  if (sight_in_evaluation(spec)) return out + ", in evaluation too; sampling computes the whole window for each token";
  if (spec.method == Method::power && model.norm_warmup_steps == 0) return "";
  if (spec.method == Method::power)
    return out + text(" during the first ", model.norm_warmup_steps,
                      model.norm_warmup_steps == 1 ? " training pass" : " training passes",
                      " (model.norm_warmup_steps); then, and in evaluation, it uses running averages");
  return out + " in training" + (statistics == EvalStatistics::running ? "; evaluation uses running averages" : "");
}

// What is one pass of the model, where a step has several.
std::string parts_line(const RunConfig& config) {
  const std::int64_t shards = config.train.shards, accumulation = config.train.grad_accumulation;
  const bool ties = sight_in_training(spec_of(norm_of(config.model))).other_samples;
  std::string out;
  if (accumulation > 1 || shards > 1)
    out += text("\na step: ", accumulation, accumulation > 1 ? " micro-batches" : " micro-batch", " of ",
                config.train.batch_size, " rows");
  if (shards > 1) out += text(", each in ", shards, " shards of ", config.train.batch_size / shards);
  if (ties && shards > 1 && config.model.norm_sync)
    out += text(", which share batch statistics", accumulation > 1 ? " within a micro-batch" : "");
  else if (ties && (accumulation > 1 || shards > 1))
    out += ", each with batch statistics of its own";
  if (config.model.norm_sync && (shards == 1 || !ties))
    out += text("\nnote: model.norm_sync changes nothing: ",
                ties ? "train.shards is 1"
                     : text("model.norm ", config::to_string(config.model.norm), " takes no batch statistics"));
  return out;
}

std::string decay_line(const ParameterStore& store, double weight_decay) {
  Index decayed = 0, tensors = 0;
  for (const Named& parameter : store.parameters())
    if (is_decayed(parameter.tensor)) {
      decayed += parameter.tensor.shape().numel();
      ++tensors;
    }
  if (weight_decay == 0) return "weight decay off";
  return text("weight decay ", weight_decay, " on ", decayed, " parameters in ", tensors,
              " tensors of rank 2, none on the other ", store.parameter_count() - decayed, " (gains, biases)");
}

std::string warnings_of(const RunConfig& config, const DataFacts& data, bool has_running_averages) {
  std::string out;
  if (config.optimizer.name == OptimizerKind::adamw && config.optimizer.lr > 1)
    out +=
        text("\nwarning: optimizer.lr = ", config.optimizer.lr, " is far above what adamw trains with (1e-4 to 1e-2)");
  if (config.schedule.warmup_steps > config.train.steps)
    out += text("\nwarning: schedule.warmup_steps = ", config.schedule.warmup_steps, " is longer than the run");
  out += leak_of(config.model, config.eval.statistics);
  if (config.eval.statistics != EvalStatistics::running && !has_running_averages)
    out += text("\nnote: eval.statistics changes nothing: model.norm ", config::to_string(config.model.norm),
                " has no running statistics");
  if (config.model.norm == NormKind::none && config.model.placement != Placement::none)
    out += "\nnote: model.placement changes nothing: model.norm is none";
  if (config.model.placement == Placement::none && config.model.norm != NormKind::none)
    out += "\nnote: model.norm changes nothing: model.placement is none";
  if (config.in_parts() && has_running_averages)
    out += "\nnote: no gradient noise scale is measured: batch statistics tie the samples of a micro-batch together";
  const double passes =
      static_cast<double>(config.train.steps) *
      static_cast<double>(config.train.batch_size * config.train.grad_accumulation * config.model.context_length) /
      static_cast<double>(std::max<Index>(1, data.train_tokens));
  return out + text("\n", fixed(passes, 2), " passes over the training data");
}

}  // namespace

std::string start_report(const RunConfig& config, const DataFacts& data, const Gpt& model, const Team& team,
                         double checkpoint_bytes) {
  const ModelConfig& m = config.model;
  std::string out =
      text("data: ", config.data.source, ", ", data.train_tokens, " tokens to train on, ", data.validation_tokens,
           " to validate, vocabulary ", model.vocab_size(), "\nvalidation entropy in nats per ", unit(config.data),
           ": unigram ", fixed(data.unigram, 3), ", bigram ", fixed(data.bigram, 3));
  if (data.floor) out += text(", floor ", fixed(*data.floor, 3));
  for (const std::string& remark : data.remarks) out += text("\nnote: ", remark);
  if (data.windows > 0)
    out +=
        text("\ndocuments: lines, in ", data.windows, " windows to train on, of which ", data.windows_in_long_lines,
             " (", fixed(100 * static_cast<double>(data.windows_in_long_lines) / static_cast<double>(data.windows), 1),
             "%) are of lines longer than the context");
  out += text("\nmodel: ", m.n_layers, " layers, d_model ", m.d_model, ", ", m.n_heads, " heads, context ",
              m.context_length, ", ", model.store().parameter_count(), " parameters; each sublayer: ", equation_of(m));
  out += text("\nupdates: ", config::to_string(config.optimizer.name), ", lr ", config.optimizer.lr, ", warmup ",
              config.schedule.warmup_steps, ", then ", config::to_string(config.schedule.decay), "; ",
              decay_line(model.store(), config.optimizer.weight_decay));
  out += parts_line(config);
  const double bytes = estimate_memory(config, data, model.vocab_size(), checkpoint_bytes).total();
  out += text("\nmemory: about ", fixed(bytes / (1 << 20), 0), " MB at the peak");
  out += text("\nthreads: ", team.measured, " (", team.source, ")");
  out += warnings_of(config, data, !model.store().buffers().empty());
  if (config.run.dir) out += text("\nrun directory: ", *config.run.dir);
  return out;
}

std::string summary_of(const RunReport& report, const std::string& directory, const std::string& program,
                       const RunConfig& config, const DataFacts& data) {
  const std::string call = shell_quoted(program);
  std::string out = text("outcome: ", config::to_string(report.outcome), " after ", report.step, " steps");
  if (!report.reason.empty()) out += text(": ", report.reason);
  if (report.last_eval) {
    out += text("\nvalidation loss: ", fixed(report.last_eval->loss, 4), " nats per ", unit(config.data),
                ", over the second half of each window ", fixed(report.last_eval->loss_second_half, 4));
    if (data.floor)
      out += text("\nbest possible:   ", fixed(*data.floor, 4), " (the text's own -ln p; a window's first ",
                  unit(config.data), "s have no history)");
    out += text("\nfor comparison:  ", fixed(data.bigram, 4), " bigram, ", fixed(data.unigram, 4), " unigram entropy");
  }
  out += text("\nrun: ", directory);
  if (report.outcome == Outcome::nonfinite || report.outcome == Outcome::diverged)
    return out + text("\nnext: a lower optimizer.lr, a longer schedule.warmup_steps, or optimizer.grad_clip above 0\n");
  if (report.outcome == Outcome::interrupted && report.step == 0)
    return out + text("\nnothing was trained yet; next: ", call, " train ", shell_quoted(directory + "/config.yaml"),
                      ' ', shell_word("run.dir=" + config::yaml_text(directory)), " --force\n");
  if (report.outcome == Outcome::interrupted)
    return out + text("\nnext: ", call, " train --resume ", shell_quoted(directory), '\n');
  const std::string checkpoint =
      shell_quoted(text(directory, report.overfitted ? "/checkpoints/best.safetensors" : ""));
  return out +
         text("\nnext: ", call, " sample ", checkpoint, " --tokens 300\n      ", call, " eval ", checkpoint, '\n');
}

}  // namespace normlab
