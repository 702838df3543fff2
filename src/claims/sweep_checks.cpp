#include "sweep_checks.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "normlab/base/check.h"
#include "normlab/base/did_you_mean.h"

namespace normlab {
namespace {

using config::Yaml;
using Strings = std::vector<std::string>;

// Refuses what is no key of a run; `item` is the claim, map or curve that names it.
void check_key(const std::string& path, const Yaml& item, std::string_view role, const std::string& key) {
  try {
    config::value_of(RunConfig{}, key);
  } catch (const ConfigError&) {
    Strings known;
    RunConfig config;
    for (const config::Key& each : config::keys_of(config))
      if (!each.is_section()) known.push_back(each.path);
    const Yaml* place = item.find(role);
    fail_at(path, place ? *place : item,
            text("`", role, "` is a key of a run, not '", config::excerpt(key), "'",
                 did_you_mean(key, known, "; `normlab train --help-table` lists them")));
  }
}

void check_bound(const std::string& path, const Yaml& at, const std::string& bound) {
  std::optional<double> number;
  try {
    number = bound_of(bound, {});
  } catch (const DataError& error) {
    fail_at(path, at, error.what());
  }
  if (number && !std::isfinite(*number)) fail_at(path, at, text("`bound` is ", bound, ", no finite number"));
}

// The keys that a form reads, besides those of all.
Strings keys_of(ClaimForm form) {
  switch (form) {
    case ClaimForm::below:
    case ClaimForm::above:
      return {"bound"};
    case ClaimForm::range:
      return {"within"};
    case ClaimForm::exponent:
      return {"within", "of"};
    case ClaimForm::margin:
      return {"by", "times", "than"};
    case ClaimForm::outcome:
      return {"is"};
    case ClaimForm::equal:
      return {"tolerance", "standard_errors", "than"};
  }
  __builtin_unreachable();
}

void refuse_keys_of_other_forms(const std::string& path, const Yaml& item, ClaimForm form) {
  const Strings own = keys_of(form);
  for (const ClaimForm other :
       {ClaimForm::below, ClaimForm::exponent, ClaimForm::margin, ClaimForm::outcome, ClaimForm::equal})
    for (const std::string& key : keys_of(other))
      if (const Yaml* found = item.find(key); found != nullptr && std::ranges::find(own, key) == own.end())
        fail_at(
            path, *found,
            text("a claim of form ", config::to_string(form), " does not read `", key, "`; it has ", join(own, ", ")));
}

void check_pair(const std::string& path, const Yaml& item, std::string_view one, std::string_view other) {
  if (item.find(one) != nullptr && item.find(other) != nullptr)
    fail_at(path, *item.find(other), text("`", one, "` and `", other, "` do not go together; give one of them"));
}

// A claim, map or curve with its part of the file.
struct Stated {
  const Sweep& sweep;
  const Yaml& item;
  std::string name;  // "claim 'x'"

  [[noreturn]] void fail(std::string_view role, const std::string& what) const {
    const Yaml* place = item.find(role);
    fail_at(sweep.path, place ? *place : item, text(name, ": ", what));
  }
};

void check_points(const Stated& named, const Conditions& where) {
  const auto met = [&](const Point& point) { return meets(point.settings, where); };
  if (!std::ranges::any_of(named.sweep.points, met))
    named.fail("where", "no point of the sweep meets its `where`; its values are those of the grid");
}

void check_value(const Stated& named, const std::string& value, const Conditions& where) {
  if (named.sweep.head.measure != Measure::train) return;
  std::int64_t steps = 0;
  for (const Point& point : named.sweep.points)
    if (meets(point.settings, where)) steps = std::max(steps, point.config.train.steps);
  try {
    check_run_field(value, steps);
  } catch (const DataError& error) {
    named.fail("value", error.what());
  }
}

void check_claim_points(const Stated& named, const Claim& claim) {
  check_points(named, claim.where);
  std::set<Settings> all;
  for (const Point& point : named.sweep.points) all.insert(point.settings);
  bool paired = claim.than.empty();
  std::set<std::string> along;
  for (const Settings& settings : all) {
    if (!meets(settings, claim.where)) continue;
    paired = paired || all.contains(changed(settings, claim.than));
    if (claim.form == ClaimForm::exponent) along.insert(settings.at(claim.of));
  }
  if (!paired) named.fail("than", "no point of the sweep differs from `where` as `than` says, and in nothing else");
  if (claim.form != ClaimForm::outcome) check_value(named, claim.value, claim.where);
  if (claim.form != ClaimForm::exponent) return;
  if (along.size() < 2) named.fail("of", text("the sweep does not vary ", claim.of, ", whose power is asked for"));
  for (const std::string& value : along)
    if (!parse_double(value)) named.fail("of", text(claim.of, " is ", value, ", no number"));
}

void check_curve_points(const Stated& named, const CurveView& curve) {
  for (const Point& point : named.sweep.points)
    if (const std::string& x = point.settings.at(curve.x); meets(point.settings, curve.where) && !parse_double(x))
      named.fail("x", text(curve.x, " is ", x, ", no number; a map has any values along its axes"));
}

}  // namespace

void fail_at(const std::string& path, const Yaml& at, std::string_view what) {
  throw ConfigError(text(config::at_place(path, at.key_at.line > 0 ? at.key_at : at.at), what));
}

void refuse_unknown(const std::string& path, const Yaml& item, std::string_view what, const Strings& known) {
  if (item.kind != Yaml::Kind::mapping)
    fail_at(path, item, text(what, " takes keys ('key: value'); it has ", join(known, ", ")));
  for (const Yaml& child : item.children)
    if (std::ranges::find(known, child.key) == known.end())
      fail_at(path, child,
              text(what, " has no key '", config::excerpt(child.key), "'",
                   did_you_mean(child.key, known, text("; it has ", join(known, ", ")))));
}

void check_claim(const std::string& path, const Yaml& item, const Claim& claim) {
  const bool bounded = claim.form == ClaimForm::below || claim.form == ClaimForm::above;
  const bool ranged = claim.form == ClaimForm::range || claim.form == ClaimForm::exponent;
  const bool paired = claim.form == ClaimForm::margin || claim.form == ClaimForm::equal;
  if (claim.claim.empty()) fail_at(path, item, "a claim has `claim`, its statement");
  if (item.find("form") == nullptr) fail_at(path, item, "a claim has `form`: what is compared");
  refuse_keys_of_other_forms(path, item, claim.form);
  if (bounded && claim.bound.empty()) fail_at(path, item, "below and above need `bound`");
  if (bounded) check_bound(path, *item.find("bound"), claim.bound);
  if (ranged && claim.within.size() != 2) fail_at(path, item, "range and exponent need `within: [least, greatest]`");
  if (ranged && !(claim.within[0] <= claim.within[1]))
    fail_at(path, item, "`within` is [least, greatest], in this order");
  if (claim.form == ClaimForm::exponent && claim.of.empty()) fail_at(path, item, "exponent needs `of`, a key");
  if (claim.form == ClaimForm::exponent) check_key(path, item, "of", claim.of);
  if (!is_final(claim.is))
    fail_at(path, *item.find("is"),
            text("`is` is trained, stuck, diverged or nonfinite, not '", config::excerpt(claim.is), "'"));
  check_pair(path, item, "by", "times");
  check_pair(path, item, "tolerance", "standard_errors");
  if (paired && claim.than.empty()) fail_at(path, item, "margin and equal need `than`: what the other point has");
  for (const Condition& change : claim.than)
    if (change.values.size() != 1)
      fail_at(path, *item.find("than"), text("`than` gives ", change.path, " one value, which the other point has"));
}

void check_view(const std::string& path, const Yaml& item, const MapView& map) {
  check_key(path, item, "x", map.x);
  check_key(path, item, "y", map.y);
}

void check_view(const std::string& path, const Yaml& item, const CurveView& curve) {
  check_key(path, item, "x", curve.x);
  for (const std::string& key : curve.by) check_key(path, item, "by", key);
}

void check_against_points(const Sweep& sweep, const Yaml& tree) {
  const auto named = [&](const char* part, std::string_view what, std::size_t nth, const std::string& name) {
    return Stated{sweep, tree.find(part)->children[nth], text(what, " '", name, "'")};
  };
  for (std::size_t i = 0; i < sweep.claims.size(); ++i)
    check_claim_points(named("claims", "claim", i, sweep.claims[i].claim), sweep.claims[i]);
  for (std::size_t i = 0; i < sweep.maps.size(); ++i) {
    const Stated map = named("maps", "map", i, sweep.maps[i].title);
    check_points(map, sweep.maps[i].where);
    check_value(map, sweep.maps[i].value, sweep.maps[i].where);
  }
  for (std::size_t i = 0; i < sweep.curves.size(); ++i) {
    const Stated curve = named("curves", "curve", i, sweep.curves[i].title);
    check_points(curve, sweep.curves[i].where);
    check_value(curve, sweep.curves[i].value, sweep.curves[i].where);
    check_curve_points(curve, sweep.curves[i]);
  }
}

}  // namespace normlab
