// Defaults that depend on one another across sections.
#include "normlab/train/run_config.h"

#include "normlab/base/check.h"

namespace normlab {

void RunConfig::resolve() {
  model.resolve();
  if (!schedule.min_lr) schedule.min_lr = optimizer.lr / 10;
  check<ConfigError>(*schedule.min_lr <= optimizer.lr, "schedule.min_lr: ", *schedule.min_lr,
                     " lies above optimizer.lr, ", optimizer.lr, "; it is the rate to end with");
}

}  // namespace normlab
