// The benchmarks' documents and counts. No time decides anything here.
#include "normlab/bench/bench.h"

#include <sys/wait.h>

#include <cmath>
#include <cstdlib>

#include "catch.h"
#include "normlab/base/parallel.h"
#include "normlab/bench/bench_parts.h"
#include "normlab/host/files.h"
#include "temporary.h"

using namespace normlab;

namespace {

constexpr Effort kOnce{0, 1, 0};
constexpr StepSize kTiny{2, 8, 2, 4, 3, 11};

Json some_peak() { return Json::object({{"threads", 1}, {"gflops", 100.0}, {"memory_read_gb_per_s", 10.0}}); }

void check_times(const Json& entry) {
  CHECK(entry.at("ms_min").real() > 0);
  CHECK(entry.at("ms_min").real() <= entry.at("ms").real());
  CHECK(entry.at("runs").integer() >= 1);
}

Json document(double step_ms, double gemm_ms) {
  Json gemm = Json::object({{"name", "gemm.forward"},
                            {"shape", Json::array({Json(2), Json(3), Json(4)})},
                            {"threads", 1},
                            {"ms", gemm_ms},
                            {"ms_min", gemm_ms},
                            {"ms_p90", gemm_ms},
                            {"runs", 3},
                            {"gflops", 5.0},
                            {"share_of_peak", 0.05}});
  Json step = Json::object({{"name", "step-A"}, {"threads", 2}, {"ms", step_ms}});
  return Json::object(
      {{"peak_gflops", 100.0}, {"kernels", Json::array({gemm})}, {"steps", Json::array({std::move(step)})}});
}

}  // namespace

TEST_CASE("timing gives the median, the least and the 90th percentile", "[bench]") {
  const Timing odd = timing_of({3, 1, 2});
  CHECK(odd.median == 2);
  CHECK(odd.min == 1);
  const Timing ten = timing_of({10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 11});
  CHECK(ten.p90 == 10);
  CHECK(timing_of({1, 2}).median == 1.5);
  int calls = 0;
  CHECK(time_runs({0, 3, 2}, [&] { ++calls; }).runs == 3);
  CHECK(calls == 5);
}

TEST_CASE("the operations of a product are counted: 2 M N K in a median of time, for each of the three", "[bench]") {
  set_threads(1);
  const Json entries = measure_linear(kOnce, some_peak(), {6, 5, 7});
  REQUIRE(entries.elements().size() == 3);
  const std::vector<std::vector<std::int64_t>> shapes{{6, 7, 5}, {6, 5, 7}, {7, 5, 6}};
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& entry = entries.elements()[i];
    check_times(entry);
    for (std::size_t axis = 0; axis < 3; ++axis) CHECK(entry.at("shape").elements()[axis].integer() == shapes[i][axis]);
    // 2 x 6 x 5 x 7 = 420, up to the rounding of one division
    CHECK(std::abs(entry.at("gflops").real() * entry.at("ms").real() * 1e6 - 420) < 1e-6);
    CHECK(entry.at("share_of_peak").real() == entry.at("gflops").real() / 100);
  }
}

TEST_CASE("the operations of attention are those that the causal mask lets through", "[bench]") {
  set_threads(1);
  const Json entries = measure_attention(kOnce, some_peak(), {2, 3, 2, 4});
  REQUIRE(entries.elements().size() == 2);
  // A product: batch 2, heads 2, 3 x 4 / 2 = 6 pairs, 2 x 4 operations each: 192. Two forward, five backward.
  const double counts[] = {384, 960};
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& entry = entries.elements()[i];
    CHECK(std::abs(entry.at("gflops").real() * entry.at("ms").real() * 1e6 - counts[i]) < 1e-6);
  }
}

TEST_CASE("norms tell their share of a copy", "[bench]") {
  set_threads(1);
  const Json entries = measure_norms(kOnce, some_peak(), 6, 8);
  REQUIRE(entries.elements().size() == 6);
  for (const Json& entry : entries.elements()) {
    check_times(entry);
    CHECK(entry.at("share_of_copy").real() > 0);
    CHECK(entry.at("gflops").real() > 0);
  }
  // forward: x and y, 6 x 8 floats each
  const Json& layer = entries.elements()[0];
  CHECK(layer.at("name").string() == "norm.layer.forward");
  CHECK(std::abs(layer.at("gb_per_s").real() * layer.at("ms").real() * 1e6 - 384) < 1e-6);
}

TEST_CASE("a step's operations follow nanoGPT's convention", "[bench]") {
  // A by hand: embedding 65 x 128 = 8320, positions 64 x 128 = 8192, a block 512 + 49536 + 16512 + 66048 + 65664 =
  // 198272, final norm 256; N = 8320 + 4 x 198272 + 256 = 801664; 6 N + 12 x 4 x 128 x 64 = 4809984 + 393216.
  CHECK(flops_per_token(kStepA, 801664 + 8192) == 5203200);

  set_threads(1);
  const Json entry = measure_step(kOnce, some_peak(), "step-tiny", kTiny);
  check_times(entry);
  for (const char* key : {"ms_per_step", "tokens_per_s", "gflops", "share_of_peak", "peak_rss_mb"})
    CHECK(entry.at(key).real() > 0);
  CHECK(entry.at("instruments_share").real() >= 0);
  CHECK(entry.at("statistics_share").real() > 0);
  CHECK(entry.at("name").string() == "step-tiny");
  CHECK(entry.at("threads").integer() == 1);
  // 12 tokens; embedding 88, a block 32 + 216 + 72 + 288 + 264 = 872, final norm 16: N = 1848; 12 L d T = 768.
  CHECK(std::abs(entry.at("gflops").real() * entry.at("ms").real() * 1e6 - 12 * (6 * 1848 + 768)) < 1e-3);
}

TEST_CASE("sampling and the machine's peak have their figures", "[bench]") {
  set_threads(1);
  const Json sample = measure_sample(kOnce, some_peak(), kTiny);
  check_times(sample);
  CHECK(sample.at("tokens_per_s").real() > 0);
  // 1848 + 32 positions, 4 bytes each, at 10 GB/s
  CHECK(std::abs(sample.at("tokens_per_s_by_memory").real() - 10e9 / (4 * 1880)) < 1e-3);
  const Json peak = measure_peak(kOnce, 1);
  for (const char* key : {"gflops", "cache_copy_gb_per_s", "memory_copy_gb_per_s", "memory_read_gb_per_s"})
    CHECK(peak.at(key).real() > 0);
}

TEST_CASE("a comparison pairs entries by name, shape and threads", "[bench]") {
  const Json earlier = document(30, 4), now = document(20, 8);
  const Json pairs = compare_bench(now, earlier);
  REQUIRE(pairs.elements().size() == 2);
  CHECK(pairs.elements()[0].at("name").string() == "gemm.forward");
  CHECK(pairs.elements()[0].at("ratio").real() == 0.5);
  CHECK(pairs.elements()[1].at("name").string() == "step-A");
  CHECK(pairs.elements()[1].at("ratio").real() == 1.5);
  CHECK(comparison_table(pairs).find("step-A") != std::string::npos);

  Json other_threads = document(20, 8), other_shape = document(20, 8);
  Json step = other_threads.at("steps").elements()[0];
  step.set("threads", 1);
  other_threads.set("steps", Json::array({step}));
  CHECK(compare_bench(other_threads, earlier).elements().size() == 1);
  Json gemm = other_shape.at("kernels").elements()[0];
  gemm.set("shape", Json::array({Json(2), Json(3), Json(5)}));
  other_shape.set("kernels", Json::array({gemm}));
  CHECK(compare_bench(other_shape, earlier).elements().size() == 1);

  CHECK_THROWS_AS(compare_bench(now, Json::object({{"loss", 1}})), DataError);
}

TEST_CASE("the table shows what an entry has", "[bench]") {
  const std::string table = bench_table(document(30, 4));
  CHECK(table.find("2x3x4") != std::string::npos);
  CHECK(table.find("step-A") != std::string::npos);
  CHECK(table.find("of peak") != std::string::npos);
}

TEST_CASE("bench refuses a misspelt name and a file that holds no result", "[bench]") {
  const TemporaryDirectory directory;
  const auto fails = [&](const std::string& words, const std::string& message) {
    const std::string out = directory.path("out");
    const int status = std::system(text("'", NORMLAB_PROGRAM, "' bench ", words, " > '", out, "' 2>&1").c_str());
    INFO(read_file(out));
    CHECK(WEXITSTATUS(status) == 2);
    CHECK(read_file(out).find(message) != std::string::npos);
  };
  fails("gem", "did you mean 'gemm'?");
  write_file(directory.path("other.json"), "{\"loss\": 1}");
  fails(text("--compare '", directory.path("other.json"), "' peak"), "no result of normlab bench");
  fails("peak --threads 0", "--threads");
}
