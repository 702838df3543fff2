// `normlab bench`: what the machine can do, how fast the kernels and whole training steps are compared with it, and how
// that compares with an earlier result. Everything is one JSON document; the table is drawn from it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "normlab/formats/json.h"

namespace normlab {

struct BenchOptions {
  std::vector<std::string> names;  // of bench_names()
  std::vector<int> threads;        // each is measured
  std::string program;             // path of this program, which `start` runs
};

// peak gemm norm attention step-A step-B step-C step-D sample tokenizer start
const std::vector<std::string>& bench_names();

// Runs what is named, in that order, after `peak`, which the others are measured against. Each name and number of
// threads has a process of its own, so that its peak memory is its own. Not to be called after a parallel region of
// several threads: they do not live on in a forked process. Before each name, `begin` is called with it; after it,
// `done` with its part of the document. SystemError when a process cannot be started or fails.
//   {"version", "commit", "processor", "peak_gflops" (at the most threads),
//    "peak":    [{"threads", "gflops", "cache_copy_gb_per_s", "memory_copy_gb_per_s", "memory_read_gb_per_s"}],
//    "kernels": [{"name", "shape", "threads", TIMES, "gflops", "share_of_peak", and for norms "gb_per_s",
//                 "share_of_copy"}],
//    "steps":   [{"name", "threads", TIMES, "ms_per_step", "tokens_per_s", "gflops", "share_of_peak", "peak_rss_mb",
//                 "instruments_share" (of a run's time that its per-layer figures take by default)}],
//    "sample":  [{"name", "threads", TIMES, "tokens_per_s", "parameter_mb", "tokens_per_s_by_memory"}],
//    "tokenizer": [{"name", "threads", TIMES, "mb_per_s"}],
//    "start":   [{"name", "threads", TIMES}]}           TIMES: "ms" (median), "ms_min", "ms_p90", "runs"
Json run_bench(const BenchOptions& options, const std::function<void(const std::string& name)>& begin,
               const std::function<void(const Json& part)>& done);

// A document, or a part of one, for people.
std::string bench_table(const Json& document);

// Entries of both documents with the same name, shape and threads: [{"name", "shape", "threads", "earlier_ms", "ms",
// "ratio"}], the ratio being earlier / now: above 1 is faster than before. DataError when `earlier` is no document.
Json compare_bench(const Json& now, const Json& earlier);
std::string comparison_table(const Json& comparison);

}  // namespace normlab
