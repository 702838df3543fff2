// A reference file's model, loss, gradients and updates, computed here and compared.
#pragma once

#include <optional>
#include <string>

#include "normlab/base/real.h"

namespace normlab {

struct VerifyReport {
  enum class Status { ok, differs, refused };
  Status status = Status::ok;
  std::string reason;  // of a refusal: what is wrong with the file; of a difference: the tensor
  // The largest error of each part: entries relative to their tensor's largest magnitude. Entries of gradients below
  // 1e-6 of the gradient norm are zero but for rounding: they are relative to that norm, and not compared after
  // updates.
  double logits = 0, loss = 0, grad = 0, grad_norm = 0, after = 0;
};

// Errors up to which a file is ok: rounding of a few thousand operations, many times over.
inline constexpr double kVerifyBoundDouble = 1e-9, kVerifyBoundFloat = 1e-3;

inline namespace NORMLAB_REAL {
VerifyReport verify_file(const std::string& path);
}
#ifndef NORMLAB_DOUBLE
namespace f64 {
VerifyReport verify_file(const std::string& path);
}
#endif

}  // namespace normlab
