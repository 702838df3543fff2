// The training loss of one batch as a function of all parameters, seen as one long vector.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "normlab/data/dataset.h"
#include "normlab/formats/safetensors.h"
#include "normlab/nn/gpt.h"

namespace normlab {

// A model by its settings and, unless it is a fresh one, its tensors: parameters and buffers by name.
struct ModelAt {
  ModelConfig config;  // resolved
  Index vocab_size = 0;
  std::uint64_t seed = 1337;
  std::vector<StoredTensor> weights;  // empty: as initialised
};

enum class Mode { training, evaluation };

// A measurement was broken off, as its caller asked.
struct Stopped {};

}  // namespace normlab

namespace normlab {
inline namespace NORMLAB_REAL {

// The tensors of `from` that the store has, by name.
void set_weights(const ParameterStore& store, const std::vector<StoredTensor>& from);

class LossSurface {
 public:
  using Vector = std::vector<double>;
  // `batch` must outlive it. Gradients throw Stopped once `stop` is true.
  LossSurface(const ModelAt& at, const Batch& batch, Mode mode = Mode::training, std::function<bool()> stop = {});

  std::size_t size() const { return size_; }
  Vector parameters() const;
  void move_to(const Vector& parameters);
  // At the place moved to. Neither leaves a trace: running averages are put back, dropout is the same each time.
  double loss();
  double loss_and_gradient(Vector& gradient);

  const Gpt& model() const { return model_; }

 private:
  Tensor forward();

  Gpt model_;
  const Batch& batch_;
  Mode mode_;
  std::function<bool()> stop_;
  std::size_t size_ = 0;
  std::optional<KeptBuffers> buffers_;
};

}  // namespace NORMLAB_REAL
}  // namespace normlab
