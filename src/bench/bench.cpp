// The benchmarks by name, each in a process of its own.
#include "normlab/bench/bench.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include "normlab/base/parallel.h"
#include "normlab/base/utf8.h"
#include "normlab/bench/bench_parts.h"
#include "normlab/host/build_facts.h"
#include "normlab/host/files.h"
#include "normlab/host/limits.h"

namespace normlab {
namespace {

constexpr Effort kKernelEffort{0.08, 3}, kPeakEffort{0.15, 3}, kStepEffort{2, 5, 2}, kSampleEffort{0.5, 5},
    kTokenizerEffort{0.5, 3}, kStartEffort{1, 5};
constexpr Index kMemoryMb = 128;  // beyond the caches of a processor that a user trains on

void write_or_exit(int file, std::string_view bytes) {
  if (write_all(file, bytes) != 0) _exit(4);
}

// The process that measures; does not return.
[[noreturn]] void measure_and_exit(int threads, const std::function<Json()>& measure, int result) {
  try {
    set_threads(threads);
    flush_denormals(true);
    with_team([&] { write_or_exit(result, measure().line()); });
    _exit(0);
  } catch (const std::exception& error) {
    write_or_exit(STDERR_FILENO, text("normlab: bench: ", printable(error.what()), '\n'));
    _exit(4);
  }
}

Json in_own_process(const std::string& name, int threads, const std::function<Json()>& measure) {
  std::array<int, 2> ends{};
  check<SystemError>(pipe(ends.data()) == 0, "no pipe can be made: ", std::strerror(errno));
  std::fflush(nullptr);
  const pid_t child = fork();
  check<SystemError>(child >= 0, "no process can be started: ", std::strerror(errno));
  if (child == 0) measure_and_exit(threads, measure, ends[1]);
  close(ends[1]);
  std::string result;
  std::array<char, 4096> buffer;
  for (ssize_t count; (count = read(ends[0], buffer.data(), buffer.size())) != 0;) {
    if (count < 0 && errno == EINTR) continue;
    check<SystemError>(count > 0, "a pipe cannot be read: ", std::strerror(errno));
    result.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  check<SystemError>(WIFEXITED(status) && WEXITSTATUS(status) == 0, "bench: the process that measured ", name, " at ",
                     threads, " threads ",
                     WIFSIGNALED(status) ? text("was ended by signal ", WTERMSIG(status)) : "failed");
  return parse_json(result, name);
}

void append(Json& entries, const Json& more) {
  for (const Json& entry : more.elements()) entries.push(entry);
}

Json bench_gemm(const Json& peak) {
  Json entries = Json::array();
  // The layers of A to D, and the head of a large vocabulary.
  for (const kernels::LinearShape shape : {kernels::LinearShape{4096, 384, 384},
                                           {4096, 384, 1536},
                                           {4096, 1536, 384},
                                           {4096, 384, 65},
                                           {2048, 128, 512},
                                           {8192, 64, 256},
                                           {768, 128, 384},
                                           {768, 512, 128},
                                           {1024, 256, 50304}})
    append(entries, measure_linear(kKernelEffort, peak, shape));
  return entries;
}

Json bench_norm(const Json& peak) {
  Json entries = measure_norms(kKernelEffort, peak, 4096, 384);
  append(entries, measure_norms(kKernelEffort, peak, 4096, 64));
  return entries;
}

Json bench_attention(const Json& peak) {
  Json entries = Json::array();
  for (const StepSize& size : {kStepA, kStepB, kStepD})
    append(entries,
           measure_attention(kKernelEffort, peak, {size.batch, size.context, size.heads, size.d_model / size.heads}));
  return entries;
}

struct Bench {
  std::string name, section;  // the array of the document that its entries go to
  std::function<Json(const Json& peak, const std::string& program)> measure;
};

Bench step_bench(const std::string& name, const StepSize& size) {
  return {name, "steps", [=](const Json& peak, const std::string&) {
            return Json::array({measure_step(kStepEffort, peak, name, size)});
          }};
}

const std::vector<Bench>& benches() {
  static const std::vector<Bench> all{
      {"peak", "peak", nullptr},
      {"gemm", "kernels", [](const Json& peak, const std::string&) { return bench_gemm(peak); }},
      {"norm", "kernels", [](const Json& peak, const std::string&) { return bench_norm(peak); }},
      {"attention", "kernels", [](const Json& peak, const std::string&) { return bench_attention(peak); }},
      step_bench("step-A", kStepA),
      step_bench("step-B", kStepB),
      step_bench("step-C", kStepC),
      step_bench("step-D", kStepD),
      {"sample", "sample",
       [](const Json& peak, const std::string&) { return Json::array({measure_sample(kSampleEffort, peak, kStepA)}); }},
      {"tokenizer", "tokenizer", [](const Json&, const std::string&) { return measure_tokenizer(kTokenizerEffort); }},
      {"start", "start",
       [](const Json&, const std::string& program) { return Json::array({measure_start(kStartEffort, program)}); }}};
  return all;
}

}  // namespace

const std::vector<std::string>& bench_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Bench& bench : benches()) out.push_back(bench.name);
    return out;
  }();
  return names;
}

Json run_bench(const BenchOptions& options, const std::function<void(const std::string& name)>& begin,
               const std::function<void(const Json& part)>& done) {
  std::map<std::string, Json> sections{{"peak", Json::array()}, {"kernels", Json::array()}, {"steps", Json::array()}};
  std::map<int, Json> peaks;
  begin("peak");
  for (const int threads : options.threads) {
    peaks[threads] = in_own_process("peak", threads, [] { return measure_peak(kPeakEffort, kMemoryMb); });
    sections["peak"].push(peaks[threads]);
  }
  done(Json::object({{"peak", sections["peak"]}}));
  for (const Bench& bench : benches()) {
    if (bench.measure == nullptr || std::ranges::count(options.names, bench.name) == 0) continue;
    begin(bench.name);
    Json entries = Json::array();
    for (const int threads : options.threads)
      append(entries,
             in_own_process(bench.name, threads, [&] { return bench.measure(peaks.at(threads), options.program); }));
    done(Json::object({{bench.section, entries}}));
    append(sections[bench.section], entries);
  }
  const BuildFacts& build = build_facts();
  Json document = Json::object({{"version", build.version},
                                {"commit", build.commit},
                                {"processor", instruction_set()},
                                {"peak_gflops", peaks.rbegin()->second.at("gflops")}});
  for (const char* section : {"peak", "kernels", "steps", "sample", "tokenizer", "start"})
    if (sections.contains(section)) document.set(section, sections[section]);
  return document;
}

}  // namespace normlab
