// Putting a run together: data, model, observers, files; and its summary.
#include "normlab/train/run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "normlab/base/files.h"
#include "normlab/base/machine.h"
#include "normlab/base/memory.h"
#include "normlab/base/parallel.h"
#include "normlab/train/metrics.h"
#include "normlab/train/observers.h"
#include "normlab/train/starting_model.h"
#include "normlab/train/tensorboard.h"
#include "normlab/train/trainer.h"
#include "run_directory.h"
#include "start_report.h"

namespace normlab {
namespace {

Team assemble_team(const TrainConfig& config, Terminal& terminal) {
  const ThreadLimit allowed = allowed_threads();
  Team team{allowed.count, 1, allowed.source};
  if (config.threads) {
    team.asked = static_cast<int>(*config.threads);
    team.source = "train.threads";
    if (team.asked > allowed.count)
      terminal.line(text("warning: train.threads asks for ", team.asked, " threads where ", allowed.count, " may run (",
                         allowed.source, "); more are slower"));
  }
  set_threads(team.asked);
  flush_denormals(config.flush_denormals);
  team.measured = measured_threads();
  if (team.measured < team.asked)
    terminal.line(
        text("warning: ", team.measured, " of the ", team.asked, " threads of ", team.source,
             " run: the system or OpenMP's settings (OMP_THREAD_LIMIT) give no more; the results are the same"));
  return team;
}

// What a run consists of once its directory, configuration and starting point are known.
struct Run {
  RunConfig config;
  std::string directory;
  Team team;
  const Dataset& data;
  const Gpt& model;
  Optimizer& optimizer;
  TrainingState state;
  SignalFlag signal;

  RunResult go(const RunOptions& options, LineWriter::Start logs, Terminal& terminal);
  RunResult train(const RunOptions& options, LineWriter::Start logs, Terminal& terminal);
};

// The state's loss, since a run that was resumed at its end has no evaluation of its own.
bool is_stuck(const RunReport& report, const TrainingState& state, const DataFacts& data) {
  return report.outcome == Outcome::trained && state.last_loss &&
         !(*state.last_loss <= (data.unigram + data.bigram) / 2);
}

RunResult Run::go(const RunOptions& options, LineWriter::Start logs, Terminal& terminal) {
  return_freed_memory();  // of what has been read
  RunResult result;
  write_into(directory, [&] { result = train(options, logs, terminal); });
  return result;
}

RunResult Run::train(const RunOptions& options, LineWriter::Start logs, Terminal& terminal) {
  const RunRecord record{config, data.facts(), model.store().parameter_count(), model.vocab_size(), team, utc_now()};
  begin_run_files(directory, record);
  LineWriter metrics(text(directory, "/metrics.jsonl"), logs), timing(text(directory, "/timing.jsonl"), logs);
  TensorBoardLog tensorboard(directory, state.step, config::dump(config));
  for (LineWriter* lines : {&metrics, &timing}) lines->tell([&](std::string_view line) { tensorboard.add_line(line); });

  const std::int64_t first = state.step;
  const std::int64_t last = std::min(config.train.steps, options.stop_at.value_or(config.train.steps));
  Progress progress(terminal, config, data, model, first, metrics);
  InitialLossWatch initial_loss(terminal, config, model.vocab_size());
  MetricsLog metrics_log(metrics, data.facts().bytes_per_token, data.facts().floor);
  TimingLog timing_log(timing, config.log.every);
  DivergenceWatch divergence(model.vocab_size(), state, config.train.stop_on_divergence);
  Checkpointer checkpointer(
      text(directory, "/checkpoints"), config.checkpoint, last, state, [&](const std::string& path) -> std::string {
        for (const std::vector<Named>* tensors : {&model.store().parameters(), &model.store().buffers()})
          if (const Named* bad = find_nonfinite(*tensors)) return bad->name;
        metrics.flush();  // what the checkpoint stands for is on the disk before it
        timing.flush();
        save_checkpoint(path, config, data.tokenizer(), data.facts().hash, state, model, optimizer);
        return {};
      });
  // Batch statistics, which have running averages, tie the samples of a part together: its gradient is no mean over
  // them.
  GradientWatch gradient_watch(state.gradient, config.in_parts() && model.store().buffers().empty());
  std::vector<Observer*> observers{&gradient_watch};
  std::optional<LayersLog> layers;
  if (config.log.layers_every > 0)
    observers.push_back(
        &layers.emplace(metrics, config.log, config.model.n_layers, state.gradient, config.optimizer.grad_clip > 0));
  observers.insert(observers.end(), {&metrics_log, &timing_log, &initial_loss, &progress, &divergence});
  std::unique_ptr<Observer> from_above;
  if (options.watch) from_above = options.watch({config, data, model, optimizer, metrics, signal});
  if (from_above) observers.push_back(from_above.get());
  InterruptWatch interrupt;
  observers.push_back(&interrupt);
  ReportRenewal report_renewal(terminal, [&] { options.report(directory); });
  const bool reports = options.report && config.log.report;
  if (reports) observers.push_back(&report_renewal);
  observers.push_back(&checkpointer);  // last: it saves what the others have noted

  Trainer trainer(config, data, model, optimizer, signal);
  RunResult result{trainer.run(first, last, observers, state.evaluation_due), directory, {}};
  RunReport& report = result.report;
  if (is_stuck(report, state, data.facts())) {
    report.outcome = Outcome::stuck;
    report.reason = "the last validation loss lies above the mean of the unigram and bigram entropies";
  }
  const bool to_the_end = report.outcome == Outcome::trained || report.outcome == Outcome::stuck;
  if (state.diverged && to_the_end) report.outcome = Outcome::diverged;
  metrics.flush();
  timing.flush();
  write_run_record(directory, record, report);
  if (reports) report_renewal.renew();
  result.summary = summary_of(report, directory, options.program, config, data.facts());
  return result;
}

}  // namespace

config::Resolved<RunConfig> load_run_config(const std::string& path, const std::vector<std::string>& overrides) {
  auto resolved = config::load_config<RunConfig>(path, overrides);
  resolved.config.resolve();
  return resolved;
}

RunConfig config_of_run(const std::string& directory) {
  const std::string path = text(directory, "/config.yaml");
  auto [config, origins] = config::load_config<RunConfig>(path);
  check<DataError>(!origins.empty(), path,
                   ": holds no key, and that of a run has every one: it is damaged. The settings are in the metadata "
                   "of the run's checkpoints too, as `config`: write them back");
  try {
    config.resolve();
  } catch (const ConfigError& error) {
    throw ConfigError(text(path, ": ", error.what()));
  }
  return config;
}

RunResult start_run(RunConfig config, const std::string& name, const RunOptions& options, Terminal& terminal) {
  const Team team = assemble_team(config.train, terminal);
  const std::uint64_t seed = static_cast<std::uint64_t>(config.seed);
  std::optional<StartingPoint> start = read_starting_point(config);
  const Dataset data =
      Dataset::load(config.data, config.model.context_length, seed, start ? start->tokenizer : std::nullopt);
  const Gpt model = starting_model(config, data, std::move(start));
  Optimizer optimizer(config.optimizer, model.store());

  const SignalFlag signal = options.watch_signals();
  const std::string directory = claim_directory(config, name, options.force);
  const RunLock lock(directory);
  if (!lock.warning().empty()) terminal.line(lock.warning());
  config.run.dir = directory;
  terminal.line(start_report(config, data.facts(), model, team));
  return Run{config, directory, team, data, model, optimizer, {}, signal}.go(options, LineWriter::Start::empty,
                                                                             terminal);
}

namespace {

// The last one; when it is damaged, the message says how to go on from the one before.
Checkpoint last_checkpoint(const std::string& directory) {
  const std::string path = checkpoint_path(directory);
  try {
    return Checkpoint(path);
  } catch (const DataError& error) {
    const std::vector<std::int64_t> steps = checkpoint_steps(text(directory, "/checkpoints"));
    if (steps.size() < 2) throw;
    throw DataError(text(error.what(), ". To go on from step ", steps[steps.size() - 2], " instead, delete ", path));
  }
}

// The checkpoint knows what the run was; neither the command line nor an edited config.yaml, which `place` names, may
// make it another.
void refuse_other_settings(const Checkpoint& checkpoint, const RunConfig& config, std::string_view place) {
  for (const config::Difference& difference : config::differences(checkpoint.config(), config)) {
    const std::string_view path = difference.path;
    const bool may_change = path == "train.steps" || path == "train.threads" || path.starts_with("run.") ||
                            path.starts_with("log.") || path.starts_with("eval.") || path.starts_with("checkpoint.");
    check<ConfigError>(
        may_change, place, ": ", path, " cannot change from ", difference.left, " to ", difference.right,
        "; only train.steps, train.threads, log.*, eval.* and checkpoint.* can. Start a new run instead");
  }
}

// Cuts a log back to what an unbroken run had written by this step.
void cut_log(const std::string& path, const TrainingState& state, Terminal& terminal) {
  const std::string lines = std::filesystem::exists(path) ? read_file(path) : std::string();
  const KeptLines kept = kept_lines(lines, state.step, path, state.evaluation_due);
  if (kept.train_steps < state.step)
    terminal.line(text("warning: ", path, " has the lines of ", kept.train_steps, " of ", state.step,
                       " steps; the others were lost"));
  if (kept.bytes < static_cast<std::int64_t>(lines.size())) truncate_file(path, kept.bytes);
}

// best.safetensors is a checkpoint too, though none that --resume takes by itself: later steps may have been logged.
void refuse_without_checkpoint(const std::string& directory) {
  const std::string folder = text(directory, "/checkpoints"), best = text(folder, "/best.safetensors");
  if (!checkpoint_steps(folder).empty()) return;
  std::string advice = text("the run ended before its first, or it was deleted. Start it anew: normlab train ",
                            directory, "/config.yaml run.dir=", directory, " --force");
  if (std::filesystem::exists(best)) {
    const std::int64_t step = Checkpoint(best).state().step;
    advice =
        text(best, " is one, of step ", step, ". To go on from it, copy it to ", folder, '/', checkpoint_name(step));
  }
  throw UserError(text(directory, ": there is no checkpoint of the last steps in ", folder, ": ", advice));
}

// A longer run has another schedule than the one that was begun.
void warn_of_other_schedule(const Checkpoint& checkpoint, const RunConfig& config, Terminal& terminal) {
  if (config.train.steps != checkpoint.config().train.steps && config.schedule.decay != Decay::constant)
    terminal.line(text("warning: train.steps is ", config.train.steps, ", was ", checkpoint.config().train.steps,
                       ": the learning rate follows the new schedule from here on; the resumed run will not equal an "
                       "unbroken one of either length"));
}

}  // namespace

RunResult resume_run(const std::string& directory, const std::vector<std::string>& overrides, const RunOptions& options,
                     Terminal& terminal) {
  const std::string config_path = text(directory, "/config.yaml");
  check<UserError>(std::filesystem::is_directory(directory), directory,
                   ": --resume takes the directory of a run, and there is none; name one that normlab train wrote");
  check<UserError>(std::filesystem::exists(config_path), directory,
                   ": --resume takes the directory of a run, and this one holds no config.yaml",
                   std::filesystem::exists(text(directory, "/run.json"))
                       ? ": the run ended as it began. Start it anew, with --force"
                       : "; name one that normlab train wrote");
  for (const char* name : {"config.yaml", "run.json", "metrics.jsonl", "timing.jsonl"}) {
    const std::string path = text(directory, '/', name);
    check<UserError>(!std::filesystem::exists(path) || std::filesystem::is_regular_file(path), path,
                     ": --resume needs the run's own file here, and this is none, but a directory, a pipe, a socket or "
                     "a device; put the file back, or start a new run");
  }
  const std::optional<std::string> end = unsaid_end(directory);
  const RunLock lock(directory);
  for (const std::string& line : {lock.warning(), end.value_or("")})
    if (!line.empty()) terminal.line(line);
  refuse_without_checkpoint(directory);
  RunConfig config = config_of_run(directory);
  const RunConfig as_written = config;
  config::apply_overrides(config, overrides);
  std::optional<Checkpoint> checkpoint = last_checkpoint(directory);
  const std::string path = checkpoint->path();
  const TrainingState state = checkpoint->state();
  refuse_other_settings(*checkpoint, as_written, config_path);
  refuse_other_settings(*checkpoint, config, "--resume");
  check<ConfigError>(state.step <= config.train.steps, "--resume: ", path, " is at step ", state.step,
                     ", beyond train.steps = ", config.train.steps, "; give a larger train.steps");
  check<UserError>(options.stop_at.value_or(state.step) >= state.step, "--stop-at ", options.stop_at.value_or(0), ": ",
                   path, " is at step ", state.step, " already; give a later step");
  config.run.dir = directory;  // it may have been moved since
  const Team team = assemble_team(config.train, terminal);
  const Dataset data = Dataset::load(config.data, config.model.context_length, static_cast<std::uint64_t>(config.seed),
                                     checkpoint->tokenizer());
  if (data.facts().hash != checkpoint->data_hash())
    terminal.line(text("warning: the data is not what the run began with (hash ", data.facts().hash, ", was ",
                       checkpoint->data_hash(), "); the resumed run will not equal an unbroken one"));
  warn_of_other_schedule(*checkpoint, config, terminal);
  const Gpt model = checkpoint->model();
  Optimizer optimizer(config.optimizer, model.store());
  checkpoint->restore(optimizer);
  checkpoint.reset();  // its bytes would stay in memory for the whole run

  const SignalFlag signal = options.watch_signals();
  cut_log(text(directory, "/metrics.jsonl"), state, terminal);
  const std::string timing = text(directory, "/timing.jsonl");
  if (std::filesystem::exists(timing)) truncate_file(timing, kept_lines(read_file(timing), state.step, timing).bytes);
  terminal.line(text("going on from ", path));
  terminal.line(start_report(config, data.facts(), model, team, static_cast<double>(std::filesystem::file_size(path))));
  return Run{config, directory, team, data, model, optimizer, state, signal}.go(options, LineWriter::Start::append,
                                                                                terminal);
}

}  // namespace normlab
