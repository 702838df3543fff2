// From points to verdicts. Each form gives for each seed by how much it holds (its slack: negative where it does not).
#include "normlab/claims/claims.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "normlab/base/check.h"
#include "normlab/base/spread.h"

namespace normlab {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();  // the slack of a run without the value

// The points of one setting over the seeds.
struct Group {
  std::string name;  // how it differs from the other groups
  std::vector<const Measured*> points;
};

// What a group says: by how much each seed holds, and the numbers behind it.
struct Findings {
  std::vector<double> slack, values;
  std::string unit;  // after the values
};

std::optional<double> value_at(const Measured& point, const std::string& field) {
  const auto found = point.values.find(field);
  return found == point.values.end() ? std::nullopt : std::optional(found->second);
}

Settings without_keys(Settings settings, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) settings.erase(key);
  return settings;
}

std::vector<Group> grouped(const Claim& claim, std::span<const Measured> points) {
  std::vector<std::string> ignored{"seed"};
  if (claim.form == ClaimForm::exponent) ignored.push_back(claim.of);
  std::map<Settings, Group> groups;
  std::vector<Settings> order;
  for (const Measured& point : points) {
    if (!meets(point.settings, claim.where)) continue;
    const Settings key = without_keys(point.settings, ignored);
    if (!groups.contains(key)) order.push_back(key);
    groups[key].points.push_back(&point);
  }
  check<DataError>(!order.empty(), "claim '", claim.claim, "': no point of the sweep meets its `where`");
  std::vector<Group> out;
  for (const Settings& settings : order) {
    Group group = groups[settings];
    for (const auto& setting : settings) {
      const auto differs = [&](const Settings& other) { return other.at(setting.first) != setting.second; };
      if (!std::ranges::any_of(order, differs)) continue;
      group.name += text(group.name.empty() ? "" : ", ", setting.first.substr(setting.first.rfind('.') + 1), " ",
                         shown(setting.second));
    }
    out.push_back(std::move(group));
  }
  return out;
}

// The point that differs from `point` as `than` says, of the same seed; nothing where the sweep has none.
const Measured* counterpart(const Claim& claim, const Measured& point, std::span<const Measured> points) {
  const Settings wanted = changed(point.settings, claim.than);
  for (const Measured& other : points)
    if (other.settings == wanted) return &other;
  return nullptr;
}

// b of value ~ x^b.
std::optional<double> exponent(const std::vector<std::pair<double, double>>& points) {
  double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
  for (const auto& [x, y] : points) {
    if (!(x > 0 && y > 0)) return std::nullopt;
    mean_x += std::log(x) / static_cast<double>(points.size());
    mean_y += std::log(y) / static_cast<double>(points.size());
  }
  for (const auto& [x, y] : points) {
    xy += (std::log(x) - mean_x) * (std::log(y) - mean_y);
    xx += (std::log(x) - mean_x) * (std::log(x) - mean_x);
  }
  return xx > 0 ? std::optional(xy / xx) : std::nullopt;
}

void add(Findings& findings, std::optional<double> value, std::optional<double> slack) {
  findings.slack.push_back(slack.value_or(kNone));
  if (value) findings.values.push_back(*value);
}

double slack_within(const Claim& claim, double value) {
  return std::min(value - claim.within[0], claim.within[1] - value);
}

Findings findings_of_bound(const Claim& claim, const Group& group) {
  Findings findings;
  for (const Measured* point : group.points) {
    const auto value = value_at(*point, claim.value);
    std::optional<double> slack;
    if (value && claim.form == ClaimForm::range) {
      slack = slack_within(claim, *value);
    } else if (value) {
      const auto bound = bound_of(claim.bound, point->entropies);
      check<DataError>(bound.has_value(), "claim '", claim.claim, "': '", claim.bound, "' is not known for this data");
      slack = claim.form == ClaimForm::below ? *bound - *value : *value - *bound;
    }
    add(findings, value, slack);
  }
  return findings;
}

Findings findings_of_exponent(const Claim& claim, const Group& group) {
  std::map<std::int64_t, std::vector<std::pair<double, double>>> by_seed;
  for (const Measured* point : group.points) {
    const auto x = parse_double(point->settings.at(claim.of));
    check<DataError>(x.has_value(), "claim '", claim.claim, "': ", claim.of, " is no number");
    by_seed[point->seed].emplace_back(*x, value_at(*point, claim.value).value_or(0));
  }
  Findings findings;
  for (const auto& [seed, pairs] : by_seed) {
    const auto power = exponent(pairs);
    add(findings, power, power ? std::optional(slack_within(claim, *power)) : std::nullopt);
  }
  return findings;
}

Findings findings_of_outcome(const Claim& claim, const Group& group) {
  Findings findings;
  std::size_t as_claimed = 0;
  std::set<std::string> others;
  for (const Measured* point : group.points) {
    const bool is = point->outcome == claim.is;
    as_claimed += is;
    if (!is) others.insert(point->outcome);
    findings.slack.push_back(is ? 1 : -1);
  }
  findings.unit = text(as_claimed, " of ", group.points.size(), " ", claim.is);
  if (!others.empty()) findings.unit += text(", the others ", join(std::vector(others.begin(), others.end()), ", "));
  return findings;
}

// Margin and equality: differences or quotients of pairs of the same seed.
Findings findings_of_pairs(const Claim& claim, const Group& group, std::span<const Measured> points) {
  Findings findings;
  for (const Measured* point : group.points) {
    const Measured* other = counterpart(claim, *point, points);
    if (other == nullptr) continue;
    const auto a = value_at(*point, claim.value), b = value_at(*other, claim.value);
    if (!a || !b) {
      add(findings, std::nullopt, std::nullopt);
    } else if (claim.form == ClaimForm::equal) {
      add(findings, *a - *b, claim.tolerance.value_or(0) - std::abs(*a - *b));
    } else if (claim.times) {
      add(findings, *a / *b, *a / *b - *claim.times);
    } else {
      add(findings, *b - *a, *b - *a - claim.by.value_or(0));
    }
  }
  check<DataError>(!findings.slack.empty(), "claim '", claim.claim,
                   "': the sweep has no point that differs from `where` as `than` says, with the same seed");
  findings.unit = claim.form == ClaimForm::equal ? " apart" : claim.times ? " times" : " lower";
  return findings;
}

// The difference of two means and its standard error.
ClaimResult judge_means(const Claim& claim, const Group& group, std::span<const Measured> points) {
  std::vector<double> here, there;
  for (const Measured* point : group.points) {
    const Measured* other = counterpart(claim, *point, points);
    if (const auto value = value_at(*point, claim.value)) here.push_back(*value);
    if (const auto value = other ? value_at(*other, claim.value) : std::nullopt) there.push_back(*value);
  }
  check<DataError>(!here.empty() && !there.empty(), "claim '", claim.claim,
                   "': no run has both sides of its comparison");
  const Spread a = spread_of(here), b = spread_of(there);
  const double error = std::hypot(a.standard_error(), b.standard_error()), difference = a.mean - b.mean;
  const std::string measured = text(spread_text(here), " against ", spread_text(there), ", difference ",
                                    significant(difference, 2), ", standard error ", significant(error, 2));
  if (std::min(here.size(), there.size()) < 2) return {Verdict::undecided, measured + ", one seed", ""};
  return {std::abs(difference) < *claim.standard_errors * error ? Verdict::holds : Verdict::fails, measured, ""};
}

Verdict verdict_of(const Claim& claim, const Findings& findings) {
  const bool missing = std::ranges::find(findings.slack, kNone) != findings.slack.end();
  if (claim.over == Over::mean && !missing && claim.form != ClaimForm::outcome) {
    const Spread slack = spread_of(findings.slack);
    const double doubt = 2 * slack.standard_error();
    if (slack.mean >= 0) return slack.mean >= doubt ? Verdict::holds : Verdict::undecided;
    return -slack.mean >= doubt ? Verdict::fails : Verdict::undecided;
  }
  const auto holding = std::ranges::count_if(findings.slack, [](double slack) { return slack >= 0; });
  if (holding == std::ssize(findings.slack)) return Verdict::holds;
  return holding == 0 ? Verdict::fails : Verdict::undecided;
}

ClaimResult judge_group(const Claim& claim, const Group& group, std::span<const Measured> points) {
  if (claim.form == ClaimForm::equal && claim.standard_errors) return judge_means(claim, group, points);
  Findings findings;
  switch (claim.form) {
    case ClaimForm::below:
    case ClaimForm::above:
    case ClaimForm::range:
      findings = findings_of_bound(claim, group);
      break;
    case ClaimForm::exponent:
      findings = findings_of_exponent(claim, group);
      break;
    case ClaimForm::outcome:
      findings = findings_of_outcome(claim, group);
      break;
    case ClaimForm::margin:
    case ClaimForm::equal:
      findings = findings_of_pairs(claim, group, points);
      break;
  }
  std::string measured = findings.values.empty() ? "" : spread_text(findings.values);
  const auto missing = std::ranges::count(findings.slack, kNone);
  if (missing > 0) measured += text(measured.empty() ? "" : ", ", missing, " without a value");
  return {verdict_of(claim, findings), measured + findings.unit, ""};
}

std::string expected_of(const Claim& claim) {
  const auto range = [&] { return text("from ", claim.within.at(0), " to ", claim.within.at(1)); };
  switch (claim.form) {
    case ClaimForm::below:
      return text("below ", claim.bound);
    case ClaimForm::above:
      return text("above ", claim.bound);
    case ClaimForm::range:
      return range();
    case ClaimForm::margin:
      return claim.times ? text("more than ", *claim.times, " times")
                         : text("lower by more than ", claim.by.value_or(0));
    case ClaimForm::exponent:
      return text("a power of ", claim.of, " ", range());
    case ClaimForm::outcome:
      return claim.is;
    case ClaimForm::equal:
      return claim.standard_errors ? text("within ", *claim.standard_errors, " standard errors")
                                   : text("at most ", claim.tolerance.value_or(0), " apart");
  }
  __builtin_unreachable();
}

// What a bound that names an entropy is for a group, the mean over its seeds; nothing for one that is a number.
std::string bound_in_numbers(const Claim& claim, const Group& group) {
  if (claim.bound.empty() || parse_double(claim.bound)) return "";
  std::vector<double> bounds;
  for (const Measured* point : group.points)
    if (const auto bound = bound_of(claim.bound, point->entropies)) bounds.push_back(*bound);
  return bounds.empty() ? "" : significant(spread_of(bounds).mean, 4);
}

}  // namespace

bool meets(const Settings& settings, const Conditions& conditions) {
  return std::ranges::all_of(conditions, [&](const Condition& condition) {
    const auto found = settings.find(condition.path);
    return found != settings.end() && std::ranges::find(condition.values, found->second) != condition.values.end();
  });
}

bool is_final(std::string_view outcome) {
  return outcome == "trained" || outcome == "stuck" || outcome == "diverged" || outcome == "nonfinite";
}

Settings changed(Settings settings, const Conditions& than) {
  for (const Condition& change : than) settings[change.path] = change.values.at(0);
  return settings;
}

ClaimResult judge(const Claim& claim, std::span<const Measured> points) {
  const std::vector<Group> groups = grouped(claim, points);
  if (claim.form != ClaimForm::outcome)
    check<DataError>(std::ranges::any_of(groups,
                                         [&](const Group& group) {
                                           return std::ranges::any_of(group.points, [&](const Measured* point) {
                                             return value_at(*point, claim.value).has_value() ||
                                                    point->outcome == "nonfinite" ||
                                                    claim.value.starts_with("steps_to");
                                           });
                                         }),
                     "claim '", claim.claim, "': no point has a value '", claim.value, "'");
  ClaimResult result{Verdict::holds, "", expected_of(claim)};
  std::set<std::string> bounds;
  for (const Group& group : groups) bounds.insert(bound_in_numbers(claim, group));
  if (bounds.size() == 1 && !bounds.begin()->empty()) result.expected += text(" (", *bounds.begin(), ")");
  for (const Group& group : groups) {
    const ClaimResult part = judge_group(claim, group, points);
    result.measured +=
        text(result.measured.empty() ? "" : "; ", group.name, group.name.empty() ? "" : ": ", part.measured,
             bounds.size() > 1 ? text(", the bound ", bound_in_numbers(claim, group)) : "");
    if (part.verdict == Verdict::fails || (part.verdict == Verdict::undecided && result.verdict == Verdict::holds))
      result.verdict = part.verdict;
  }
  return result;
}

std::vector<std::string> fields_of(const Claim& claim) {
  if (claim.form == ClaimForm::outcome) return {};
  return {claim.value};
}

}  // namespace normlab
