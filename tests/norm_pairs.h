// Every norm in every place that it may have, for the tests that drive them all.
#pragma once

#include <vector>

#include "normlab/base/check.h"
#include "normlab/nn/model_config.h"

namespace normlab {

inline const std::vector<NormKind> kAllNorms{
    NormKind::layer, NormKind::rms,        NormKind::scale, NormKind::group, NormKind::instance, NormKind::layer_seq,
    NormKind::batch, NormKind::batch_step, NormKind::power, NormKind::dyt,   NormKind::none};
inline const std::vector<Placement> kAllPlacements{Placement::pre,      Placement::post,     Placement::sandwich,
                                                   Placement::res_post, Placement::deepnorm, Placement::none};

struct NormPair {
  NormKind norm;
  Placement placement;
};

inline bool is_refused(NormPair pair) {
  ModelConfig config;
  config.norm = pair.norm;
  config.placement = pair.placement;
  try {
    config.resolve();
  } catch (const ConfigError&) {
    return true;
  }
  return false;
}

inline std::vector<NormPair> legal_pairs() {
  std::vector<NormPair> pairs;
  for (const NormKind norm : kAllNorms)
    for (const Placement placement : kAllPlacements)
      if (!is_refused({norm, placement})) pairs.push_back({norm, placement});
  return pairs;
}

}  // namespace normlab
