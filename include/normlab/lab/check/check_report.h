// What the checks look at and what they find.
#pragma once

#include <string>
#include <vector>

#include "normlab/data/dataset.h"
#include "normlab/formats/json.h"
#include "normlab/lab/curvature/loss_surface.h"

namespace normlab {

struct CheckItem {
  enum class Status { ok, failed, warning };
  std::string name;
  Status status = Status::ok;
  std::string detail;
};

// What changed in the first sample of a batch where nothing should have.
struct Leak {
  std::string place, op;      // the first op whose result changed, in the order of the forward; empty: nothing did
  double largest_change = 0;  // of the logits concerned
  explicit operator bool() const { return !place.empty(); }
};
struct LeakInModes {
  Leak training, evaluation;
};

// How far a norm's output moves when its input is changed: the root mean square of the difference over that of the
// output, over the elements that were not changed themselves.
struct InvarianceRow {
  std::string change;
  double training = 0, evaluation = 0;
};

struct CheckReport {
  std::vector<CheckItem> items;
  LeakInModes later_token;                // what earlier outputs see of a changed later token
  LeakInModes other_samples;              // what the first sample sees of the others
  std::vector<InvarianceRow> invariance;  // empty without a norm
  bool failed() const;
};

struct CheckInput {
  ModelAt model;
  Batch batch, other;  // two batches of the training data, of one shape
};

Json json_of(const CheckReport& report);
std::string text_of(const CheckReport& report, const ModelConfig& config);

}  // namespace normlab
