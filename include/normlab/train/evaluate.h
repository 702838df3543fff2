// The loss on validation windows.
#pragma once

#include <functional>
#include <optional>

#include "normlab/data/dataset.h"
#include "normlab/nn/gpt.h"
#include "normlab/train/observer.h"
#include "normlab/train/run_config.h"

namespace normlab {

// Rows of one forward pass in evaluation. A row's loss does not depend on its company, so this is only a matter of
// speed.
inline constexpr Index kEvaluationRows = 16;
// For own_rows: a token is predicted in a pass over those before it in its row, and no other row.
inline constexpr Index kOwnPrefix = 0;

// Over the given windows of the validation part; sums in double, in the order of the windows. Without `own_rows` batch
// norms use their running statistics, with it those of that many windows together, or of prefixes.
EvalReport evaluate(const Gpt& model, const Dataset& data, std::span<const Window> windows,
                    std::optional<Index> own_rows = std::nullopt);
// The same; nothing where `stop` became true on the way.
std::optional<EvalReport> evaluate(const Gpt& model, const Dataset& data, std::span<const Window> windows,
                                   std::optional<Index> own_rows, const std::function<bool()>& stop);

// What eval.statistics says for a model with batch statistics: how many rows they are taken of.
std::optional<Index> own_rows(const RunConfig& config);
// A warning where running averages that `steps` steps have hardly moved are evaluated on; else nothing.
std::string young_averages(const RunConfig& config, std::int64_t steps);

}  // namespace normlab
