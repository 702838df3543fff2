// Defaults that depend on one another across sections.
#include "normlab/train/run_config.h"

#include "normlab/base/check.h"

namespace normlab {

void RunConfig::resolve() {
  model.resolve();
  check<ConfigError>(train.batch_size % train.shards == 0, "train.shards: ", train.shards,
                     " does not divide train.batch_size, ", train.batch_size);
  if (!schedule.min_lr) schedule.min_lr = optimizer.lr / 10;
  check<ConfigError>(*schedule.min_lr <= optimizer.lr, "schedule.min_lr: ", *schedule.min_lr,
                     " lies above optimizer.lr, ", optimizer.lr, "; it is the rate to end with");
}

}  // namespace normlab
