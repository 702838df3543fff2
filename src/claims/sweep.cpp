// Running the points of a sweep, several at a time.
#include "normlab/claims/sweep.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>
#include <tuple>

#include "normlab/base/clock.h"
#include "normlab/base/parallel.h"
#include "normlab/bench/bench_parts.h"
#include "normlab/claims/report_sweep.h"
#include "normlab/host/files.h"
#include "normlab/host/limits.h"
#include "normlab/host/lock.h"
#include "normlab/host/process.h"
#include "normlab/run/memory_estimate.h"

namespace normlab {
namespace {

// How long points will take on one thread, from a few steps of the first sizes; those of the others by their FLOPs.
class Estimate {
 public:
  double seconds(const Point& point, Measure measure) {
    constexpr double kStart = 0.4;  // drawing the text, writing files
    const RunConfig& config = point.config;
    const double tokens =
        static_cast<double>(config.train.batch_size * config.train.grad_accumulation * config.model.context_length);
    if (measure == Measure::bench) return kBench;
    if (measure != Measure::train)
      return kStart + steps_of(measure) * tokens * flops(size_of(config)) * seconds_per_flop(size_of(config));
    const std::int64_t evaluations = 1 + config.train.steps / config.eval.every;
    const double evaluated =
        static_cast<double>(evaluations) * static_cast<double>(config.eval.windows * config.model.context_length);
    const StepSize size = size_of(config);
    const double all = static_cast<double>(config.train.steps) * tokens + evaluated / 3;
    return kStart + all * flops(size) * seconds_per_flop(size);
  }

 private:
  static constexpr std::int64_t kVocabulary = 64;  // about that of a text by character
  static constexpr double kBench = 20;             // seconds

  // About as many steps as a measurement takes the time of, measured with configs/tiny.yaml.
  static double steps_of(Measure measure) {
    return measure == Measure::curvature ? 170 : measure == Measure::check ? 40 : measure == Measure::shards ? 4 : 2;
  }

  static StepSize size_of(const RunConfig& config) {
    return {config.model.n_layers,       config.model.d_model,    config.model.n_heads,
            config.model.context_length, config.train.batch_size, kVocabulary};
  }
  static double flops(const StepSize& size) {
    return flops_per_token(size, size.layers * 12 * size.d_model * size.d_model + kVocabulary * size.d_model);
  }
  double seconds_per_flop(const StepSize& size) {
    constexpr std::size_t kMostSizes = 8;
    const auto key = std::tuple(size.layers, size.d_model, size.heads, size.context, size.batch);
    if (const auto known = seconds_per_flop_.find(key); known != seconds_per_flop_.end()) return known->second;
    if (seconds_per_flop_.size() == kMostSizes) return seconds_per_flop_.begin()->second;
    set_threads(1);
    flush_denormals(true);
    const Json step = measure_step({0.05, 2}, Json::object({{"gflops", 1}}), "", size);
    const double tokens = static_cast<double>(size.batch * size.context);
    return seconds_per_flop_[key] = step.at("ms_per_step").real() / 1e3 / (tokens * flops(size));
  }

  std::map<std::tuple<Index, Index, Index, Index, Index>, double> seconds_per_flop_;
};

struct Task {
  const Point* point = nullptr;
  double estimate = 0;  // seconds
  bool anew = false;    // the attempt to go on failed
};

struct Process {
  Task task;
  Clock::time_point start;
};

// How many processes, with how many threads each. Runs of one thread side by side are faster than one run of all of
// them; a benchmark is alone.
struct Crew {
  std::size_t processes;
  std::int64_t threads;

  static Crew of(const Sweep& sweep, std::size_t points) {
    const std::int64_t cores = allowed_threads().count;
    if (sweep.head.measure == Measure::bench) return {1, sweep.threads.value_or(cores)};
    std::int64_t most = sweep.threads ? std::max<std::int64_t>(1, cores / *sweep.threads) : cores;
    if (const auto memory = memory_limit()) {  // as many as fit into it
      double largest = 1;
      for (const Point& point : sweep.points) largest = std::max(largest, estimate_memory(point.config, {}, 1).total());
      most = static_cast<std::int64_t>(std::clamp(memory->bytes / largest, 1.0, static_cast<double>(most)));
    }
    const std::int64_t processes = std::clamp<std::int64_t>(static_cast<std::int64_t>(points), 1, most);
    return {static_cast<std::size_t>(processes), sweep.threads.value_or(std::max<std::int64_t>(1, cores / processes))};
  }
};

class Runner {
 public:
  Runner(SweepDirectory& directory, const SweepOptions& options, Terminal& terminal)
      : directory_(directory), sweep_(directory.sweep()), options_(options), terminal_(terminal) {
    for (const Point& point : sweep_.points) {
      if (options.force) directory.remove(point);
      if (!directory.is_done(point)) {
        waiting_.push_back({&point});
        continue;
      }
      directory.tidy(point);
      directory.check_values(point);
    }
    crew_ = Crew::of(sweep_, waiting_.size());
    remaining_ = waiting_.size();
  }

  // Whether all points are done; false when a signal came between.
  bool run() {
    if (waiting_.empty()) return true;
    plan();
    try {
      while (!waiting_.empty() || !running_.empty()) {
        if (options_.interrupted != nullptr && *options_.interrupted != 0) return terminal_.end(), stop_all(), false;
        while (!waiting_.empty() && running_.size() < crew_.processes) start_next();
        if (!take_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        show_status();
      }
    } catch (...) {
      terminal_.clear();
      stop_all();
      throw;
    }
    terminal_.clear();
    return true;
  }

 private:
  void plan() {
    const std::string what =
        text(waiting_.size(), " of ", sweep_.points.size(), " points to measure, ", crew_.processes, " at a time, ",
             crew_.threads, crew_.threads == 1 ? " thread each" : " threads each");
    Estimate estimate;
    for (Task& task : waiting_) task.estimate = estimate.seconds(*task.point, sweep_.head.measure);
    // The longest first, so that none is left alone at the end.
    std::ranges::stable_sort(waiting_, std::greater<>(), &Task::estimate);
    for (const Task& task : waiting_) planned_ += task.estimate;
    const double seconds = std::max(planned_ / static_cast<double>(crew_.processes), waiting_[0].estimate);
    terminal_.line(text(sweep_.name, ": ", what, "; about ", clock_text(seconds), " minutes"));
  }

  void start_next() {
    const Task task = waiting_.front();
    waiting_.erase(waiting_.begin());
    std::vector<std::string> words = directory_.command(*task.point, crew_.threads, task.anew);
    words.insert(words.begin(), options_.program);
    const pid_t process =
        start_child(std::move(words), directory_.output_path(*task.point), directory_.errors_path(*task.point));
    running_.emplace(process, Process{task, Clock::now()});
  }

  bool take_ended() {
    const Ended ended = ended_child();
    const auto found = running_.find(ended.process);
    if (found == running_.end()) return false;
    Task task = found->second.task;
    const double seconds = seconds_since(found->second.start);
    running_.erase(found);
    if (directory_.accept(*task.point, ended.code, seconds)) {
      directory_.check_values(*task.point);
      ++done_;
      finished_ += task.estimate;
      show_done(*task.point);
    } else if (options_.interrupted == nullptr || *options_.interrupted == 0) {
      // A checkpoint that cannot be gone on from is no reason to give up.
      if (task.anew || sweep_.head.measure != Measure::train) fail(*task.point, ended.code);
      task.anew = true;
      waiting_.insert(waiting_.begin(), task);
    }
    return true;
  }

  [[noreturn]] void fail(const Point& point, int code) const {
    const std::string path = directory_.errors_path(point);
    std::string said = read_file(path);
    while (said.ends_with('\n')) said.pop_back();
    said = said.substr(said.rfind('\n') == std::string::npos ? 0 : said.rfind('\n') + 1);
    const std::string message =
        text(sweep_.path, ": the point with ", point_name(sweep_, point), ", seed ", point.seed,
             ", could not be measured (exit code ", code, "): ", said, " (all of it: ", path, ")");
    if (code == 2) throw UserError(message);
    throw SystemError(message);
  }

  void stop_all() {
    for (const auto& [process, running] : running_) kill(process, SIGTERM);
    while (!running_.empty()) {
      const Ended ended = ended_child();
      if (const auto found = running_.find(ended.process); found != running_.end()) {
        directory_.accept(*found->second.task.point, ended.code, seconds_since(found->second.start));
        running_.erase(found);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  }

  std::string time_left() const {
    double finished = finished_, all = 0;
    for (const auto& [process, running] : running_) {
      all += running.task.estimate;
      if (planned_ > 0) finished += std::min(seconds_since(running.start), 0.95 * running.task.estimate);
    }
    for (const Task& task : waiting_) all += task.estimate;
    all += finished_;
    return finished > 0 ? text(", ", clock_text(seconds_since(start_) / finished * (all - finished)), " left") : "";
  }

  void show_status() {
    if (!terminal_.is_live() || seconds_since(shown_) < 0.2) return;
    shown_ = Clock::now();
    std::vector<Terminal::Field> fields{{bar(static_cast<double>(done_) / static_cast<double>(remaining_)), 2},
                                        {text(done_, '/', remaining_), 0},
                                        {sweep_.name, 3}};
    if (const std::string left = time_left(); !left.empty()) fields.push_back({left.substr(2), 1});
    terminal_.status(std::move(fields));
  }

  void show_done(const Point& point) {
    const Measured& measured = directory_.measured(point);
    const auto loss = measured.values.find("val_loss");
    const std::string line =
        text(done_, '/', remaining_, ' ', point_name(sweep_, point), ", seed ", point.seed, ": ", measured.outcome,
             loss == measured.values.end() ? "" : text(", validation loss ", fixed(loss->second, 3)), time_left());
    if (!terminal_.is_live()) terminal_.line(line);
    constexpr double kReportEvery = 5;  // seconds
    if (sweep_.head.measure == Measure::train && seconds_since(reported_) > kReportEvery && done_ < remaining_) {
      const SweepResult so_far = read_sweep_result(directory_);
      write_results(directory_, so_far);
      write_sweep_report(directory_, so_far);
      reported_ = Clock::now();
    }
  }

  SweepDirectory& directory_;
  const Sweep& sweep_;
  const SweepOptions& options_;
  Terminal& terminal_;
  Crew crew_{};
  std::vector<Task> waiting_;
  std::map<pid_t, Process> running_;
  std::size_t remaining_ = 0, done_ = 0;
  double planned_ = 0, finished_ = 0;  // seconds of one process
  Clock::time_point start_ = Clock::now(), shown_{}, reported_ = Clock::now();
};

// The runs that points start from, as a sweep of their own; false when a signal came between.
bool run_before(const SweepDirectory& directory, const SweepOptions& options, Terminal& terminal) {
  Sweep first = directory.sweep();
  first.name += ", what comes before";
  first.head.measure = Measure::train;
  first.head.keep_checkpoints = true;
  first.points = first.before;
  first.before.clear();
  first.claims.clear();
  first.maps.clear();
  first.curves.clear();
  SweepDirectory there(first, directory.path_before());
  std::filesystem::create_directories(text(there.path(), "/points"));
  return Runner(there, options, terminal).run();
}

SweepResult run_in_directory(SweepDirectory& directory, const SweepOptions& options, Terminal& terminal) {
  const Clock::time_point start = Clock::now();
  const Sweep& sweep = directory.sweep();
  directory.refuse_other_sweep();
  std::filesystem::create_directories(text(directory.path(), "/points"));
  const DirectoryLock lock(directory.path(), "sweep works", "wait for it, or end it", DirectoryLock::Reach::children);
  if (!lock.warning().empty()) terminal.line(lock.warning());
  directory.write_record();
  const auto before = static_cast<std::size_t>(
      options.force ? 0
                    : std::ranges::count_if(sweep.points, [&](const Point& each) { return directory.is_done(each); }));
  const bool started =
      sweep.before.empty() || before == sweep.points.size() || run_before(directory, options, terminal);
  const bool all = started && Runner(directory, options, terminal).run();
  SweepResult result = read_sweep_result(directory);
  result.interrupted = !all;
  result.measured_now = result.points.size() - std::min(before, result.points.size());
  write_results(directory, result);
  write_sweep_report(directory, result);
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace

SweepResult run_sweep(SweepDirectory& directory, const SweepOptions& options, Terminal& terminal) {
  SweepResult result;
  write_into(directory.path(), [&] { result = run_in_directory(directory, options, terminal); });
  return result;
}

}  // namespace normlab
