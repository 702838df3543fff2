// Defaults that depend on one another across sections.
#include "normlab/train/run_config.h"

#include "normlab/base/check.h"
#include "normlab/base/text.h"

namespace normlab {

void RunConfig::resolve() {
  model.resolve();
  check<ConfigError>(train.batch_size % train.shards == 0, "train.shards: ", train.shards,
                     " does not divide train.batch_size, ", train.batch_size);
  check<ConfigError>(model.norm != NormKind::batch_step || statistics_rows() > 1,
                     "train.batch_size: ", train.batch_size,
                     train.shards > 1 ? text(" in ", train.shards, " shards") : "",
                     " leaves model.norm batch_step one row at each position, which is its own mean: "
                     "the norm would give its bias whatever comes in; take 2 or more, or the norm batch");
  check<ConfigError>(
      model.norm != NormKind::batch || statistics_rows() * model.context_length > 1,
      "train.batch_size: ", train.batch_size, train.shards > 1 ? text(" in ", train.shards, " shards") : "",
      " with model.context_length 1 leaves model.norm batch one position, which is its own mean: the norm "
      "would give its bias whatever comes in; take more rows or a longer context");
  if (!schedule.min_lr) schedule.min_lr = optimizer.lr / 10;
  check<ConfigError>(*schedule.min_lr <= optimizer.lr, "schedule.min_lr: ", *schedule.min_lr,
                     " lies above optimizer.lr, ", optimizer.lr, "; it is the rate to end with");
}

template config::Keys config::keys_of(RunConfig&);

}  // namespace normlab
