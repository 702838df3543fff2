// The measurements that `normlab bench` is made of. Each uses the team of set_threads, and gives entries of the
// document of lab/bench.h.
#pragma once

#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/formats/json.h"
#include "normlab/kernels/kernels.h"
#include "normlab/nn/model_config.h"

namespace normlab {

// Numbers that lie in memory as a tensor's do, aligned to 64 bytes (base/memory.h).
template <class T>
struct TensorAlignment {
  using value_type = T;
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* p, std::size_t) { ::operator delete (p, std::align_val_t{64}); }
  bool operator==(const TensorAlignment&) const { return true; }
};
using Numbers = std::vector<Real, TensorAlignment<Real>>;

// Runs until both are reached: this many seconds, and this many runs; `warmup` untimed ones first.
struct Effort {
  double seconds;
  int least_runs;
  int warmup = 1;
};

struct Timing {  // seconds
  double median, min, p90;
  int runs;
};
Timing timing_of(std::vector<double> seconds);  // at least one
Timing time_runs(Effort effort, const std::function<void()>& run);
// "ms", "ms_min", "ms_p90", "runs" into an entry.
void set_times(Json& entry, const Timing& timing);

// GB/s of copying a block of `count` numbers, read and written bytes together; the best run.
double copy_bandwidth(Effort effort, Index count);
// {"threads", "gflops", ...}: the best run of each. `memory_mb`: size of each of two blocks beyond the caches.
Json measure_peak(Effort effort, Index memory_mb);

// Arrays of entries. `peak` is what measure_peak gave for the same number of threads.
// forward [rows, in] x [in, out], input gradient [rows, out] x [out, in], weight gradient [out, rows] x [rows, in]; the
// shape of each is M, N, K of c [M, N] = a [M, K] b [K, N].
Json measure_linear(Effort effort, const Json& peak, kernels::LinearShape shape);
// Forward and backward of layer, rms and batch norm on [rows, channels]. GB/s count what must pass by: layer and rms
// forward x and y, backward x, dy and dx; batch reads its inputs twice, since the statistics of a channel come first:
// forward x, x and y, backward x, dy, x, dy and dx. share_of_copy: of the bandwidth of a copy of such a tensor,
// measured with it.
Json measure_norms(Effort effort, const Json& peak, Index rows, Index channels);
// Forward and backward; FLOPs of what the causal mask lets through, 2 products forward and 5 backward (the weights are
// computed again).
Json measure_attention(Effort effort, const Json& peak, kernels::AttentionShape shape);

struct StepSize {
  std::int64_t layers, d_model, heads, context, batch, vocab;
  ModelConfig model() const;  // resolved; gelu_tanh, tied, learned positions, layer norm before the branches
};
inline constexpr StepSize kStepA{4, 128, 4, 64, 12, 65}, kStepB{6, 384, 6, 256, 16, 65}, kStepC{24, 64, 4, 64, 16, 65},
    kStepD{4, 256, 4, 128, 8, 50304};
// nanoGPT's convention: 6 N + 12 L d T for a token, N all parameters but the position embedding.
double flops_per_token(const StepSize& size, Index parameters);
// One entry: forward, backward, clipping and AdamW on fresh random tokens; and what a run's instruments add.
Json measure_step(Effort effort, const Json& peak, std::string_view name, const StepSize& size);
// One entry: tokens of a window as long as the context, with the key/value cache.
Json measure_sample(Effort effort, const Json& peak, const StepSize& size);

// Two entries, bpe-train and bpe-encode, with "mb_per_s": 1.1 MB of text to 1024 tokens.
Json measure_tokenizer(Effort effort);

// One entry: `program` trains kStepA on 1 MB of text; from its start until it has told its first step. SystemError when
// it does not.
Json measure_start(Effort effort, const std::string& program);

}  // namespace normlab
