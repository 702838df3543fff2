// Claims: statements about the points of a sweep in a few fixed forms, and the verdict with its numbers.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "normlab/config/loader.h"
#include "normlab/run/run_reader.h"

namespace normlab {

// What was measured at one point of a sweep.
struct Measured {
  Settings settings;  // every key, the seed among them
  std::int64_t seed = 0;
  std::string outcome;                                   // of a run; "measured" for other measurements
  std::map<std::string, double, std::less<>> entropies;  // unigram, bigram, floor, ln_vocab, where known
  std::map<std::string, double, std::less<>> values;     // by field; one that is not finite is missing
};

// The keys that a point must have, each with one of the values (as YAML).
struct Condition {
  std::string path;
  std::vector<std::string> values;
};
using Conditions = std::vector<Condition>;
bool meets(const Settings& settings, const Conditions& conditions);
bool is_final(std::string_view outcome);  // what a run can end as: trained, stuck, diverged, nonfinite
Settings changed(Settings settings, const Conditions& than);  // each key of `than` with its value

// below     value < bound
// above     value > bound
// range     within[0] <= value <= within[1]
// margin    value(where) < value(than) - by;  with `times`: value(where) > times x value(than)
// exponent  within[0] <= b <= within[1], value ~ of^b by least squares of the logarithms
// outcome   the run ended as `is`
// equal     |value(where) - value(than)| <= tolerance;  with `standard_errors`, of means: below that many standard
// errors
//           of the difference
enum class ClaimForm { below, above, margin, range, exponent, outcome, equal };
enum class Over { every_seed, mean };

struct Claim : config::Fields {
  FIELD(std::string, claim, "", config::any_value, "the statement, in words")
  FIELD(std::string, source, "", config::any_value, "who states it, and where")
  FIELD(ClaimForm, form, ClaimForm::outcome, config::any_value, "what is compared")
  FIELD(std::string, value, "val_loss", config::any_value, "what is measured: val_loss, layers.token_cosine.-1@25, ...")
  FIELD(std::string, bound, "", config::any_value,
        "below, above: a number, or unigram, bigram, ln_vocab, floor with + or -")
  FIELD(std::optional<double>, by, std::nullopt, config::any_value, "margin: the value lies below the other by more")
  FIELD(std::optional<double>, times, std::nullopt, config::any_value,
        "margin: the value is more than that many times the other")
  FIELD(std::vector<double>, within, {}, config::any_value, "range, exponent: [least, greatest]")
  FIELD(std::string, of, "", config::any_value, "exponent: the key whose power the value follows")
  FIELD(std::string, is, "trained", config::any_value, "outcome: trained, stuck, diverged or nonfinite")
  FIELD(std::optional<double>, tolerance, std::nullopt, config::at_least(0), "equal: the greatest difference")
  FIELD(std::optional<double>, standard_errors, std::nullopt, config::above(0), "equal: of the difference of the means")
  FIELD(Over, over, Over::every_seed, config::any_value, "every_seed, or the mean over the seeds")

  Conditions where, than;  // `than`: how the other point differs
};

enum class Verdict { holds, fails, undecided };

struct ClaimResult {
  Verdict verdict;
  std::string measured;  // "3.03 (3.02 to 3.04, 5 seeds)"
  std::string expected;  // "above unigram - 0.1"
};

// Over every seed: `holds` when all seeds do, `fails` when none does, `undecided` when they disagree. Over the mean:
// `undecided` when the mean lies within two standard errors of the bound. Where `where` leaves several settings, all
// must hold. DataError when no point meets `where`, none of them has the value, or none is there to compare with.
ClaimResult judge(const Claim& claim, std::span<const Measured> points);

// Fields that the claim needs of a point, "" excepted.
std::vector<std::string> fields_of(const Claim& claim);

}  // namespace normlab
