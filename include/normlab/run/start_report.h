// What a run tells before it starts and after it ended, and the look at its first loss.
#pragma once

#include <string>

#include "normlab/data/dataset.h"
#include "normlab/nn/gpt.h"
#include "normlab/run/terminal.h"
#include "normlab/train/observer.h"
#include "normlab/train/run_config.h"
#include "run_directory.h"

namespace normlab {

// Data, model, threads, what is decayed, and warnings about implausible settings; checkpoint_bytes: see
// estimate_memory.
std::string start_report(const RunConfig& config, const DataFacts& data, const Gpt& model, const Team& team,
                         double checkpoint_bytes = 0);

// `program` is what its commands begin with.
std::string summary_of(const RunReport& report, const std::string& directory, const std::string& program,
                       const RunConfig& config, const DataFacts& data);

}  // namespace normlab
