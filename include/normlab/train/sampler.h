// Text from a model, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/base/rng.h"
#include "normlab/data/tokenizer/tokenizer.h"
#include "normlab/nn/gpt.h"

namespace normlab {

struct SampleOptions {
  double temperature = 0.8;  // logits are divided by it; 0 takes the likeliest token
  std::int64_t top_k = 0;    // only that many of the likeliest tokens; 0 is off, more than there are is all
  double top_p = 1;          // only the likeliest tokens that make up this probability, at least one; 1 is off
  std::uint64_t seed = 1337;
};

// The next token. Ties go to the lower id; temperature 0 uses no randomness.
std::int32_t choose(std::span<const Real> logits, const SampleOptions& options, Random& random);

// Keys and values of the positions so far are kept. When the context is full the window slides by one position and is
// computed again, since every position's number changes. Where a norm lets a position see later ones (instance,
// layer_seq), each token changes all before it: the window is always computed again.
class Sampler {
 public:
  enum class Cache { on, off };

  // `prompt`: at least one token; of a longer one than the context, the last part is used.
  Sampler(const Gpt& model, std::span<const std::int32_t> prompt, const SampleOptions& options,
          Cache cache = Cache::on);

  std::int32_t next();

 private:
  std::vector<Real> last_logits();

  const Gpt& model_;
  SampleOptions options_;
  Random random_;
  bool cached_;
  KeyValueCache cache_;
  std::vector<std::int32_t> window_;  // at most context_length tokens
};

// A text as it comes, up to the first of several strings: what could be the start of one is held back.
class StopStrings {
 public:
  // None is empty.
  explicit StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {}

  // The text that is certain now; from the first string on, nothing.
  std::string push(std::string_view text);
  std::string finish();  // what was held back
  bool met() const { return met_; }

 private:
  std::vector<std::string> strings_;
  std::string pending_;
  bool met_ = false;
};

// What a text starts with where no prompt is given: a newline, or the first token of a vocabulary without one.
std::vector<std::int32_t> default_prompt(const Tokenizer& tokenizer);

// `count` tokens after the default prompt, decoded; nothing where `stop` became true on the way.
std::optional<std::string> sample_text(const Gpt& model, const Tokenizer& tokenizer, std::int64_t count,
                                       const SampleOptions& options, const std::function<bool()>& stop);

}  // namespace normlab
