// The parts of `normlab check`, each in the file of its name. Compiled in double alone.
#pragma once

#include "normlab/lab/check/check_report.h"

namespace normlab {
inline namespace f64 {

// check_gradients.cpp
// How far each parameter tensor's gradient is from differences of the loss along a random direction, as a share of the
// gradient and of 1e5 times what the differences leave uncertain: above 1e-5 it is wrong.
struct GradientError {
  std::string tensor;
  double error = 0;
};
// What rounding leaves uncertain in each entry of the gradient: how far it moves with places next to `place`. Backward
// through norms of hardly any variance, it may be far above the loss's.
LossSurface::Vector rounding_of_gradient(LossSurface& surface, LossSurface::Vector place);
std::vector<GradientError> gradient_errors(LossSurface& surface, const LossSurface::Vector& gradient);
// On a corner of the batch.
CheckItem check_gradients(const CheckInput& input, Mode mode);

// check_leaks.cpp
// Position of the token that is changed in the first sample; nothing where it has no earlier one.
std::optional<Index> changed_position(const Batch& batch);
Leak see_later_token(const CheckInput& input, Mode mode);
// The other samples replaced, and taken away.
Leak see_other_samples(const CheckInput& input, Mode mode);

// check_norm.cpp
std::vector<InvarianceRow> measure_invariance(const ModelConfig& config);
// Where a statistic of a centred norm is taken over one or two values of the batch, what that means; else nothing.
std::string few_values(const ModelConfig& config, const Batch& batch);
// PowerNorm's backward after its warm-up is no derivative (Shen et al. 2020, algorithm 2); against its formula.
CheckItem check_power_backward(const ModelConfig& config);

}  // namespace f64
}  // namespace normlab
