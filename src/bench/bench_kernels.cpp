// The kernels alone, on random numbers: products, norms, attention.
#include "normlab/base/parallel.h"
#include "normlab/base/rng.h"
#include "normlab/bench/bench_parts.h"

namespace normlab {
namespace {

Numbers uniform_numbers(Index n, std::string_view stream) {
  const Random random(1, stream);
  Numbers out(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < out.size(); ++i)  // in [-1, 1)
    out[i] = static_cast<Real>(static_cast<double>(random.bits(i) >> 11) * 0x1p-52 - 1);
  return out;
}
Numbers zeros(Index n) { return Numbers(static_cast<std::size_t>(n)); }

Json kernel_entry(const std::string& name, Json::Array shape, const Json& peak, const Timing& timing, double flops) {
  Json entry = Json::object({{"name", name}, {"shape", Json(std::move(shape))}, {"threads", threads()}});
  set_times(entry, timing);
  const double gflops = flops / timing.median / 1e9;
  entry.set("gflops", gflops);
  entry.set("share_of_peak", gflops / peak.at("gflops").real());
  return entry;
}

// What a norm is on [rows, channels], how it is called, and its operations for each element.
struct NormCase {
  const char* name;
  kernels::NormView view;
  bool centred;
  // layer and batch: mean 1, variance 3, x_hat 2, gain and bias 2; backward: x_hat 2, gain 1, two sums 3, dx 4, dgain
  // 2, dbias 1. rms: squares 2, x_hat 1, gain 1; backward: x_hat 1, gain 1, sum 2, dx 3, dgain 2.
  double forward_operations, backward_operations;
};

// How many tensors of [rows, channels] must pass by, read or written. A row's statistics come while it is at hand: x
// and y forward; x, dy and dx backward. A channel's come first: x again; x and dy again.
struct NormTraffic {
  double forward, backward;
};
NormTraffic traffic_of(kernels::NormView v) { return v.inner == 1 ? NormTraffic{2, 3} : NormTraffic{3, 5}; }

// GB/s of copies that touch as much memory as a norm's forward (x, y) and its backward (x, dy, dx).
struct CopyRates {
  double forward, backward;
};

void add_norm(Json& entries, Effort effort, const Json& peak, const NormCase& norm, Index rows, CopyRates copy) {
  const Index channels = norm.view.channels, size = rows * channels, groups = norm.view.groups();
  const Numbers x = uniform_numbers(size, "x"), dy = uniform_numbers(size, "dy"),
                gain = uniform_numbers(channels, "gain"),
                bias = norm.centred ? uniform_numbers(channels, "bias") : Numbers{};
  Numbers y = zeros(size), dx = zeros(size), mean = zeros(groups), rstd = zeros(groups), dgain = zeros(channels),
          dbias = norm.centred ? zeros(channels) : Numbers{};
  const kernels::NormRule rule{norm.centred, 1e-5};
  const auto add = [&](const char* direction, const Timing& timing, double operations, double tensors,
                       double copy_rate) {
    Json entry = kernel_entry(text(norm.name, direction), {Json(rows), Json(channels)}, peak, timing,
                              operations * static_cast<double>(size));
    const double rate = tensors * static_cast<double>(size) * sizeof(Real) / timing.median / 1e9;
    entry.set("gb_per_s", rate);
    entry.set("share_of_copy", rate / copy_rate);
    entries.push(std::move(entry));
  };
  add(".forward",
      time_runs(effort, [&] { kernels::normalize_forward(norm.view, rule, {}, x, gain, bias, y, mean, rstd); }),
      norm.forward_operations, traffic_of(norm.view).forward, copy.forward);
  add(".backward",
      time_runs(
          effort,
          [&] { kernels::normalize_backward(norm.view, rule, {}, x, gain, mean, rstd, dy, {dx}, {dgain}, {dbias}); }),
      norm.backward_operations, traffic_of(norm.view).backward, copy.backward);
}

}  // namespace

Json measure_linear(Effort effort, const Json& peak, kernels::LinearShape s) {
  const Numbers x = uniform_numbers(s.rows * s.in, "x"), weight = uniform_numbers(s.out * s.in, "weight");
  // y, and then dz.
  Numbers y = uniform_numbers(s.rows * s.out, "y");
  const double flops = 2 * static_cast<double>(s.rows) * static_cast<double>(s.in) * static_cast<double>(s.out);
  Json entries = Json::array();
  const auto add = [&](const char* name, Index m, Index n, Index k, const std::function<void()>& run) {
    entries.push(kernel_entry(name, {Json(m), Json(n), Json(k)}, peak, time_runs(effort, run), flops));
  };
  add("gemm.forward", s.rows, s.out, s.in,
      [&] { kernels::linear_forward(s, Activation::none, x, weight, {}, {}, {}, y); });
  Numbers dx = zeros(s.rows * s.in);
  add("gemm.input", s.rows, s.in, s.out, [&] { kernels::linear_backward_input(s, y, weight, {dx}); });
  Numbers dweight = zeros(s.out * s.in);
  add("gemm.weight", s.out, s.in, s.rows, [&] { kernels::linear_backward_weight(s, y, x, {dweight}, {}); });
  return entries;
}

Json measure_norms(Effort effort, const Json& peak, Index rows, Index channels) {
  const CopyRates copy{copy_bandwidth(effort, rows * channels), copy_bandwidth(effort, rows * channels * 3 / 2)};
  Json entries = Json::array();
  for (const NormCase& norm : {NormCase{"norm.layer", {rows, channels, 1, channels}, true, 8, 13},
                               NormCase{"norm.rms", {rows, channels, 1, channels}, false, 4, 9},
                               NormCase{"norm.batch", {1, rows, channels, channels}, true, 8, 13}})
    add_norm(entries, effort, peak, norm, rows, copy);
  return entries;
}

Json measure_attention(Effort effort, const Json& peak, kernels::AttentionShape s) {
  const Index channels = s.heads * s.head_dim, rows = s.batch * s.time;
  const Numbers qkv = uniform_numbers(rows * 3 * channels, "qkv"), dy = uniform_numbers(rows * channels, "dy");
  Numbers y = zeros(rows * channels), log_sum = zeros(s.batch * s.heads * s.time), dqkv = zeros(rows * 3 * channels);
  // Of one product: T (T + 1) / 2 pairs of a query and a key.
  const double flops = static_cast<double>(s.batch * channels) * static_cast<double>(s.time * (s.time + 1));
  Json entries = Json::array();
  const auto add = [&](const char* name, double products, const std::function<void()>& run) {
    entries.push(kernel_entry(name, {Json(s.batch), Json(s.time), Json(s.heads), Json(s.head_dim)}, peak,
                              time_runs(effort, run), products * flops));
  };
  add("attention.forward", 2, [&] { kernels::attention_forward(s, {}, qkv, y, log_sum); });
  add("attention.backward", 5, [&] { kernels::attention_backward(s, {}, qkv, y, log_sum, dy, {dqkv}); });
  return entries;
}

}  // namespace normlab
