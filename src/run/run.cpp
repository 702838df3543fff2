// Putting a run together: data, model, observers, files; and its summary.
#include "normlab/run/run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>

#include "normlab/base/memory.h"
#include "normlab/base/parallel.h"
#include "normlab/base/utf8.h"
#include "normlab/data/corpora/corpora.h"
#include "normlab/formats/json.h"
#include "normlab/host/files.h"
#include "normlab/host/limits.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/checkpointer.h"
#include "normlab/run/figures.h"
#include "normlab/run/memory_estimate.h"
#include "normlab/run/metrics.h"
#include "normlab/run/progress.h"
#include "normlab/run/run_directory.h"
#include "normlab/run/start_report.h"
#include "normlab/run/starting_model.h"
#include "normlab/run/tensorboard.h"
#include "normlab/run/watches.h"
#include "normlab/train/trainer.h"

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
  Clock::time_point start;
  const DataConfig& found;  // the configuration's data, where the texts were found

  RunResult go(const RunOptions& options, LineWriter::Start logs, Terminal& terminal);
  RunResult train(const RunOptions& options, LineWriter::Start logs, Terminal& terminal);
};

RunResult Run::go(const RunOptions& options, LineWriter::Start logs, Terminal& terminal) {
  return_freed_memory();  // of what has been read
  RunResult result;
  write_into(directory, [&] { result = train(options, logs, terminal); });
  return result;
}

RunResult Run::train(const RunOptions& options, LineWriter::Start logs, Terminal& terminal) {
  const RunRecord record{config, data.facts(), data.tokenizer(), model.store().parameter_count(),
                         team,   utc_now(),    state.run_id,     found};
  begin_run_files(directory, record);
  LogWriter metrics(text(directory, "/metrics.jsonl"), logs), timing(text(directory, "/timing.jsonl"), logs);
  TensorBoardLog tensorboard(directory, state.step, config::dump(config));
  for (const char* name : {"/metrics.jsonl", "/timing.jsonl"})  // of the step that a run goes on from, again
    read_log(read_file(text(directory, name)), text(directory, name),
             [&](const Json& line, const std::string&, std::size_t) {
               if (line.at("step").integer() == state.step) tensorboard.add_line(line);
               return true;
             });
  for (LogWriter* lines : {&metrics, &timing}) lines->tell([&](const Json& line) { tensorboard.add_line(line); });

  if (logs == LineWriter::Start::empty)
    metrics.write(Json::object({{"step", 0}, {"kind", "run"}, {"id", state.run_id}}));

  const std::int64_t first = state.step;
  const std::int64_t last = std::min(config.train.steps, options.stop_at.value_or(config.train.steps));
  Progress progress(terminal, config, data, model, first, metrics);
  InitialLossWatch initial_loss(terminal, config, model.vocab_size());
  NeglectWatch neglect(terminal, config);
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
  observers.insert(observers.end(), {&metrics_log, &timing_log, &initial_loss, &progress, &neglect, &divergence});
  std::unique_ptr<Observer> from_above;
  if (options.watch) from_above = options.watch({config, data, model, optimizer, metrics, signal});
  if (from_above) observers.push_back(from_above.get());
  std::optional<TimeLimit> time_limit;
  if (config.train.time_limit && signal != nullptr)
    observers.push_back(&time_limit.emplace(*config.train.time_limit, start,
                                            3.0 * sizeof(Real) * static_cast<double>(record.parameters)));
  InterruptWatch interrupt;
  observers.push_back(&interrupt);
  ReportRenewal report_renewal(terminal, [&] { options.report(directory); });
  const bool reports = options.report && config.log.report;
  if (reports) observers.push_back(&report_renewal);
  observers.push_back(&checkpointer);  // last: it saves what the others have noted

  Trainer trainer(config, data, model, optimizer, signal);
  RunResult result{trainer.run(first, last, observers, state.evaluation_due), directory, {}};
  RunReport& report = result.report;
  judge(report, state, data.facts());
  metrics.flush();
  timing.flush();
  write_run_record(directory, record, report);
  if (reports) report_renewal.renew();
  remove_half_written(directory);  // by a report's process that was killed
  result.summary = summary_of(report, directory, options.program, config, data.facts());
  return result;
}

}  // namespace

void judge(RunReport& report, const TrainingState& state, const DataFacts& data) {
  if (report.outcome != Outcome::trained) return;
  if (state.diverged) report.outcome = Outcome::diverged;
  if (state.diverged || !state.last_loss) return;
  const double best = state.best_loss.value_or(std::numeric_limits<double>::infinity());
  const double middle = (data.unigram + data.bigram) / 2;
  const bool at_floor = data.floor && best <= *data.floor + kTelling;
  if (!at_floor && data.unigram - data.bigram < kTelling) {
    report.reason =
        text("this text cannot show whether it is stuck: unigram and bigram entropy differ by less than ", kTelling);
  } else if (!at_floor && best > middle) {
    report.outcome = Outcome::stuck;
    report.reason = text("the best validation loss, ", fixed(best, 4), ", lies above ", fixed(middle, 4),
                         ", the mean of the unigram and bigram entropies");
  }
  report.overfitted = *state.last_loss > best + kTelling;
  if (report.overfitted)
    report.reason += text(report.reason.empty() ? "" : "; ", "overfitted: the best validation loss, ", fixed(best, 4),
                          state.best_step > 0 ? text(", was that of step ", state.best_step) : "", ", and the last is ",
                          fixed(*state.last_loss - best, 4), " above it");
}

config::Resolved<RunConfig> load_run_config(const std::string& path, const std::vector<std::string>& overrides) {
  auto resolved = config::load_config<RunConfig>(path, overrides);
  resolved.config.resolve();
  return resolved;
}

RunConfig config_of_run(const std::string& directory) {
  const std::string path = text(directory, "/config.yaml");
  auto [config, origins] = config::load_config<RunConfig>(path);
  check<DataError>(
      !origins.empty(), path,
      ": holds no key, and that of a run has every one: it is damaged. Remove it, and normlab train --resume "
      "writes it again from the run's checkpoint");
  try {
    config.resolve();
  } catch (const ConfigError& error) {
    throw ConfigError(text(path, ": ", error.what()));
  }
  return config;
}

RunResult start_run(RunConfig config, const std::string& name, const RunOptions& options, Terminal& terminal) {
  const Clock::time_point start_time = Clock::now();
  const Team team = assemble_team(config.train, terminal);
  const std::uint64_t seed = static_cast<std::uint64_t>(config.seed);
  std::optional<StartingPoint> start = read_starting_point(config);
  require_memory(config, {}, 1);
  const Dataset data =
      Dataset::load(config.data, config.model.context_length, seed, start ? start->tokenizer : std::nullopt);
  require_memory(config, data.facts(), data.tokenizer().vocab_size());
  const Gpt model = starting_model(config, data, std::move(start));
  Optimizer optimizer(config.optimizer, model.store());

  const SignalFlag signal = options.watch_signals();
  const std::string directory = claim_directory(config, name, options.force);
  const RunLock lock(directory);
  if (!lock.warning().empty()) terminal.line(lock.warning());
  config.run.dir = directory;
  terminal.line(start_report(config, data.facts(), model, team));
  TrainingState state;
  state.run_id = run_id(config, data.facts().hash, model);
  return Run{config, directory, team, data, model, optimizer, state, signal, start_time, config.data}.go(
      options, LineWriter::Start::empty, terminal);
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
// make it another. Whether a text elsewhere is the same one is seen when it has been read; a built-in corpus is more
// than its text, since it has a floor.
void refuse_other_settings(const Checkpoint& checkpoint, const RunConfig& config, std::string_view place) {
  const auto is_built_in = [](const std::string& source) { return std::ranges::count(corpus_names(), source) > 0; };
  for (const config::Difference& difference : config::differences(checkpoint.config(), config)) {
    const std::string_view path = difference.path;
    const bool is_text = path != "data.source" || (!is_built_in(difference.left) && !is_built_in(difference.right));
    check<ConfigError>(may_change_on_resume(path) && is_text, place, ": ", path, " cannot change from ",
                       difference.left, " to ", difference.right,
                       "; only train.steps, train.threads, train.time_limit, train.memory_check, log.*, eval.*, "
                       "checkpoint.* and the place of the same text can. Start a new run instead");
  }
}

// run.json; empty where it is lost or damaged, as it is written again.
Json record_of(const std::string& directory) {
  try {
    return read_run_record(directory);
  } catch (const UserError&) {
    return Json::object();
  }
}

// A text in it; empty where it has none of this name.
std::string text_of(const Json& record, std::string_view name) {
  const Json* value = record.is_object() ? record.find(name) : nullptr;
  return value && value->is_string() ? value->string() : "";
}

// The text that the run began with: at the paths of its configuration or, unless these were just given, at those from
// the run's directory in run.json. `found` becomes where.
Dataset text_of_run(const Checkpoint& checkpoint, const RunConfig& config, bool is_given, DataConfig& found) {
  const std::string& directory = *config.run.dir;
  const auto load = [&] {
    try {
      Dataset data = Dataset::load(found, config.model.context_length, static_cast<std::uint64_t>(config.seed),
                                   checkpoint.tokenizer());
      check<DataError>(data.facts().hash == checkpoint.data_hash(), "data.source: ", found.source,
                       ": this is another text than the run's: its hash is ", data.facts().hash, ", the run's ",
                       checkpoint.data_hash());
      return data;
    } catch (const UserError& error) {
      throw DataError(text(error.what(),
                           "; --resume takes the text that the run began with: name it with "
                           "data.source=PATH where it was moved. On another one a new run may start from the run's "
                           "weights: model.from=",
                           shell_quoted(directory)));
    }
  };
  try {
    return load();
  } catch (const DataError&) {
    const Json record = record_of(directory);
    const Json* sources = record.find("sources");
    if (is_given || sources == nullptr) throw;
    const auto from_directory = [&](std::string_view key, std::string& path) {
      if (const std::string relative = text_of(*sources, key); !relative.empty()) path = text(directory, '/', relative);
    };
    from_directory("data.source", found.source);
    if (found.validation) from_directory("data.validation", *found.validation);
    try {
      return load();
    } catch (const DataError&) {  // the first one tells more
    }
    throw;
  }
}

// The id that run.json or, where it has none, the log's first line has; empty where neither has one.
std::string id_of_run(const std::string& directory) {
  const std::string metrics = text(directory, "/metrics.jsonl");
  std::string id = text_of(record_of(directory), "run_id");
  if (!id.empty()) return id;
  if (std::filesystem::exists(metrics))
    read_log(read_file(metrics), metrics, [&](const Json& line, const std::string&, std::size_t) {
      if (const Json* kind = line.find("kind"); kind && *kind == Json("run")) id = line.at("id").string();
      return false;
    });
  return id;
}

// What config.yaml said, as far as it is known where the file was lost.
RunConfig restored_config(const Checkpoint& checkpoint, const std::string& directory, Terminal& terminal) {
  RunConfig config = checkpoint.config();
  const Json record = record_of(directory);
  const Json* threads = record.find("threads_asked");
  const bool has_threads = text_of(record, "threads_source") == "train.threads" && threads && threads->is_number();
  if (has_threads) config.train.threads = threads->integer();
  terminal.line(text(directory, "/config.yaml was lost, and is written again from ", checkpoint.path(),
                     has_threads ? ", train.threads from run.json; log.*, checkpoint.* and train.time_limit"
                                 : "; log.*, checkpoint.*, train.threads and train.time_limit",
                     " have their defaults where they are not given again"));
  return config;
}

void refuse_checkpoint_of_other_run(const Checkpoint& checkpoint, const std::string& directory) {
  const std::string& id = checkpoint.state().run_id;
  const std::string own = id_of_run(directory);
  check<UserError>(own.empty() || id == own, checkpoint.path(), ": this is a checkpoint of ",
                   id.empty() ? "an earlier version" : text("run ", id), ", and ", directory, " is run ", own,
                   ": seed, settings, data, model.from or build differ. Move it elsewhere, and put the run's own back");
}

// Cuts a log back to what an unbroken run had written by this step; how many `train` lines it keeps. That of an earlier
// version gets the checksums that the lines to come have.
std::int64_t cut_log(const std::string& path, const TrainingState& state) {
  if (!std::filesystem::exists(path)) return 0;
  const std::string lines = read_file(path);
  const KeptLines kept = kept_lines(lines, state.step, path, state.evaluation_due);
  if (kept.bytes < static_cast<std::int64_t>(lines.size())) truncate_file(path, kept.bytes);
  if (const std::string whole = lines.substr(0, static_cast<std::size_t>(kept.bytes)); !has_checksums(whole))
    write_file(path, with_checksums(whole));
  return kept.train_steps;
}

// best.safetensors is a checkpoint too, though none that --resume takes by itself: later steps may have been logged.
void refuse_without_checkpoint(const std::string& directory) {
  const std::string folder = text(directory, "/checkpoints"), best = text(folder, "/best.safetensors");
  if (!checkpoint_steps(folder).empty()) return;
  std::string advice = text("the run ended before its first, or it was deleted. Start it again: normlab train ",
                            shell_quoted(directory + "/config.yaml"), ' ',
                            shell_word("run.dir=" + config::yaml_text(directory)), " --force");
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
  const Clock::time_point start_time = Clock::now();
  const std::string config_path = text(directory, "/config.yaml");
  check<UserError>(std::filesystem::is_directory(directory), directory,
                   ": --resume takes the directory of a run, and there is none; name one that normlab train wrote");
  const bool is_lost = !std::filesystem::exists(config_path);
  check<UserError>(!is_lost || !checkpoint_steps(text(directory, "/checkpoints")).empty(), directory,
                   ": --resume takes the directory of a run, and this one holds no config.yaml",
                   std::filesystem::exists(text(directory, "/run.json"))
                       ? ": the run ended as it began. Start it again, with --force"
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
  std::optional<Checkpoint> checkpoint;
  if (is_lost) checkpoint = last_checkpoint(directory);
  RunConfig config = is_lost ? restored_config(*checkpoint, directory, terminal) : config_of_run(directory);
  const RunConfig as_written = config;
  config::apply_overrides(config, overrides);
  if (!is_lost) checkpoint = last_checkpoint(directory);
  const std::string path = checkpoint->path();
  const TrainingState state = checkpoint->state();
  refuse_checkpoint_of_other_run(*checkpoint, directory);
  refuse_other_settings(*checkpoint, as_written, config_path);
  refuse_other_settings(*checkpoint, config, "--resume");
  check<ConfigError>(state.step <= config.train.steps, "--resume: ", path, " is at step ", state.step,
                     ", beyond train.steps = ", config.train.steps, "; give a larger train.steps");
  check<UserError>(options.stop_at.value_or(state.step) >= state.step, "--stop-at ", options.stop_at.value_or(0), ": ",
                   path, " is at step ", state.step, " already; give a later step");
  config.run.dir = directory;  // it may have been moved since
  const Team team = assemble_team(config.train, terminal);
  const double checkpoint_bytes = static_cast<double>(std::filesystem::file_size(path));
  require_memory(config, {}, 1, checkpoint_bytes);
  DataConfig found = config.data;
  const bool is_given =
      config.data.source != as_written.data.source || config.data.validation != as_written.data.validation;
  const Dataset data = text_of_run(*checkpoint, config, is_given, found);
  require_memory(config, data.facts(), data.tokenizer().vocab_size(), checkpoint_bytes);
  warn_of_other_schedule(*checkpoint, config, terminal);
  const Gpt model = checkpoint->model();
  Optimizer optimizer(config.optimizer, model.store());
  checkpoint->restore(optimizer);
  checkpoint.reset();  // its bytes would stay in memory for the whole run

  const SignalFlag signal = options.watch_signals();
  const std::string metrics = text(directory, "/metrics.jsonl");
  if (const std::int64_t steps = cut_log(metrics, state); steps < state.step)
    terminal.line(
        text("warning: ", metrics, " has the lines of ", steps, " of ", state.step, " steps; the others were lost"));
  cut_log(text(directory, "/timing.jsonl"), state);
  terminal.line(text("going on from ", path));
  terminal.line(start_report(config, data.facts(), model, team, checkpoint_bytes));
  return Run{config, directory, team, data, model, optimizer, state, signal, start_time, found}.go(
      options, LineWriter::Start::append, terminal);
}

}  // namespace normlab
