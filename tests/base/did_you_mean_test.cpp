// What is suggested in place of a name that does not exist.
#include "normlab/base/did_you_mean.h"

#include "catch.h"

using namespace normlab;

TEST_CASE("the nearest name is found by its letters, and none when all are far", "[base]") {
  const std::vector<std::string> names{"n_layers", "n_heads", "d_model"};
  CHECK(nearest("n-layers", names) == "n_layers");
  CHECK(nearest("nlayer", names) == "n_layers");
  CHECK(nearest("temperature", names).empty());
  const std::vector<std::string> keys{"eps", "steps", "train", "model", "lr", "y"};
  CHECK(nearest("trian", keys) == "train");  // one change: two neighbours swapped
  CHECK(nearest("modle", keys) == "model");
  CHECK(nearest("stepz", keys) == "steps");
  CHECK(nearest("r", keys) == "lr");
  CHECK(nearest("nrom", {"from", "norm"}) == "norm");  // one change each: the same first letter decides
  CHECK(nearest("epochs", keys).empty());              // three changes of six letters
  CHECK(nearest("tails", keys).empty());               // two of five
  CHECK(nearest("x", keys).empty());                   // no letter in common
}

TEST_CASE("a name that begins with another, or begins another, is near it", "[base]") {
  const std::vector<std::string> norms{"layer", "rms", "layer_seq", "batch", "batch_step", "no"};
  CHECK(nearest("rmsnorm", norms) == "rms");
  CHECK(nearest("LayerNorm", norms) == "layer");
  CHECK(nearest("batch-step-norm", norms) == "batch_step");  // the longest
  CHECK(nearest("sand", {"pre", "sandwich"}) == "sandwich");
  CHECK(nearest("nonsense", norms).empty());  // two letters say too little
  CHECK(nearest("la", norms).empty());
}

TEST_CASE("a suggestion is added to a message, or what else helps", "[base]") {
  CHECK(did_you_mean("trian", {"train", "eval"}) == "; did you mean 'train'?");
  CHECK(did_you_mean("xyz", {"train", "eval"}).empty());
  CHECK(did_you_mean("xyz", {"train"}, "; it has train") == "; it has train");
  CHECK(did_you_mean("", {"train"}).empty());
}
