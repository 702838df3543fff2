// Curvature while a run goes on.
#pragma once

#include <memory>

#include "normlab/run/run.h"

namespace normlab {

// Writes `curvature` lines to metrics.jsonl at step 0 and every `log.curvature_every` steps: the figures of
// lab/curvature.h after that many updates, always on the run's first micro-batch. Nothing where that setting is 0.
std::unique_ptr<Observer> curvature_log(const RunParts& run);

}  // namespace normlab
