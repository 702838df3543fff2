// A sweep's file read: its grids become points.
#include "normlab/claims/sweep_loader.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "normlab/base/check.h"
#include "normlab/base/hash.h"
#include "normlab/data/corpora/corpora.h"
#include "normlab/host/files.h"
#include "sweep_checks.h"

namespace normlab {
namespace {

using config::Yaml;

constexpr std::string_view kBase = "base", kGrid = "grid", kClaims = "claims", kMaps = "maps", kCurves = "curves",
                           kBefore = "before";

// The tree without some of its keys, which are read in another way.
Yaml without(Yaml tree, std::initializer_list<std::string_view> keys) {
  std::erase_if(tree.children, [&](const Yaml& child) { return std::ranges::find(keys, child.key) != keys.end(); });
  return tree;
}

// A value of a key of the configuration, as its type writes it: 1e-3 and 0.001 are one.
std::string written(const std::string& path, const std::string& key, const Yaml& value) {
  RunConfig config;
  config::load(config, config::nest(key, value), path);
  return config::value_of(config, key);
}

Conditions read_conditions(const std::string& path, const Yaml* tree) {
  Conditions out;
  if (tree == nullptr) return out;
  if (tree->kind != Yaml::Kind::mapping) fail_at(path, *tree, "conditions are KEY: VALUE or KEY: [VALUES]");
  for (const Yaml& child : tree->children) {
    Condition condition{child.key, {}};
    if (child.kind == Yaml::Kind::sequence)
      for (const Yaml& value : child.children) condition.values.push_back(written(path, child.key, value));
    else
      condition.values.push_back(written(path, child.key, child));
    out.push_back(std::move(condition));
  }
  return out;
}

const std::vector<Yaml>& items(const std::string& path, const Yaml& tree, std::string_view key) {
  static const std::vector<Yaml> none;
  const Yaml* found = tree.find(key);
  if (found == nullptr || found->kind == Yaml::Kind::null) return none;
  if (found->kind != Yaml::Kind::sequence) fail_at(path, *found, text(key, " is a list"));
  return found->children;
}

// The keys of a part of the file, and those that are read in another way.
template <class Part>
std::vector<std::string> names_of(Part& part, std::initializer_list<std::string_view> others) {
  std::vector<std::string> names(others.begin(), others.end());
  for (const config::Key& key : config::keys_of(part)) names.push_back(key.path);
  return names;
}

Claim read_claim(const std::string& path, const Yaml& tree) {
  Claim claim;
  refuse_unknown(path, tree, "a claim", names_of(claim, {"where", "than"}));
  config::load(claim, without(tree, {"where", "than"}), path);
  claim.where = read_conditions(path, tree.find("where"));
  claim.than = read_conditions(path, tree.find("than"));
  check_claim(path, tree, claim);
  return claim;
}

template <class View>
std::vector<View> read_views(const std::string& path, const Yaml& tree, std::string_view key, std::string_view what) {
  std::vector<View> views;
  for (const Yaml& item : items(path, tree, key)) {
    View view;
    refuse_unknown(path, item, what, names_of(view, {"where"}));
    config::load(view, without(item, {"where"}), path);
    view.where = read_conditions(path, item.find("where"));
    check_view(path, item, view);
    views.push_back(std::move(view));
  }
  return views;
}

// A key and the values it takes.
struct Axis {
  std::string key;
  std::vector<Yaml> values;
};
using Grid = std::vector<Axis>;

Grid read_grid(const std::string& path, const Yaml& tree) {
  if (tree.kind != Yaml::Kind::mapping) fail_at(path, tree, "a grid is KEY: [VALUES]");
  Grid grid;
  for (const Yaml& child : tree.children) {
    Axis axis{child.key, {}};
    if (child.kind == Yaml::Kind::sequence)
      axis.values = child.children;
    else
      axis.values.push_back(child);
    if (axis.values.empty()) fail_at(path, child, text(child.key, " has no values"));
    if (child.key == "run.dir")
      fail_at(path, child, "the points of a sweep lie in its own directory; leave run.dir out");
    std::set<std::string> known;
    for (const Yaml& value : axis.values)
      if (!known.insert(written(path, child.key, value)).second)
        fail_at(path, child, text(child.key, " has the value ", written(path, child.key, value), " twice"));
    grid.push_back(std::move(axis));
  }
  return grid;
}

std::vector<Grid> read_grids(const std::string& path, const Yaml& tree) {
  const Yaml* found = tree.find(kGrid);
  if (found == nullptr || found->kind == Yaml::Kind::null) return {Grid{}};
  std::vector<Grid> grids;
  if (found->kind == Yaml::Kind::sequence)
    for (const Yaml& item : found->children) grids.push_back(read_grid(path, item));
  else
    grids.push_back(read_grid(path, *found));
  return grids;
}

// A file is looked for from the current directory, then from that of the sweep's file.
RunConfig read_base(const std::string& path, const Yaml& tree) {
  const Yaml* base = tree.find(kBase);
  RunConfig config;
  if (base == nullptr || base->kind == Yaml::Kind::null) return config;
  if (base->kind == Yaml::Kind::scalar) {
    std::filesystem::path file = base->text;
    if (!std::filesystem::exists(file)) file = std::filesystem::path(path).parent_path() / file;
    return config::load_config<RunConfig>(file.string()).config;
  }
  config::load(config, *base, path);
  return config;
}

// What the configuration says of a file is its name; a point's result depends on what is in it.
std::string content_mark(const std::string& source, std::map<std::string, std::string>& known) {
  if (!std::filesystem::is_regular_file(source)) return "";
  const auto [mark, is_new] = known.try_emplace(source);
  if (is_new) mark->second = text(static_cast<std::int64_t>(fnv1a(read_file(source)) >> 1));
  return mark->second;
}

// "post-200-s1-0123456789ab": readable, and different for different results.
std::string id_of(const Point& point, Measure measure, const std::string& content) {
  std::string name;
  for (const std::string& key : point.varied)
    if (key != "seed") name += point.settings.at(key) + "-";
  for (char& c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_')) c = '-';
  if (name.size() > 60) name.resize(60);
  const std::uint64_t hash = fnv1a(text(config::to_string(measure), content, config::dump(point.config)));
  return text(name, 's', point.seed, '-', hexadecimal(hash, 12));
}

struct PointMaker {
  const std::string& path;
  const SweepHead& head;
  const RunConfig& base;
  const Yaml* settings_before;  // may be null
  std::map<std::string, std::string> contents{};
  std::set<std::string> ids{};
  std::vector<Point> points{}, points_before{};

  // Where it lies among them.
  std::size_t add_before(const Point& point) {
    Point first;
    first.config = point.config;
    first.config.model.from = base.model.from;
    for (const Yaml& child : settings_before->children)
      config::load(first.config, config::nest(child.key, child), path);
    first.config.resolve();
    first.varied = point.varied;
    first.seed = point.seed;
    first.settings = settings_of(first.config);
    first.id = id_of(first, Measure::train, content_mark(first.config.data.source, contents));
    // One for all points that differ in nothing that it depends on.
    const auto same = std::ranges::find(points_before, first.settings, &Point::settings);
    const auto at = static_cast<std::size_t>(same - points_before.begin());
    if (same == points_before.end()) points_before.push_back(std::move(first));
    return at;
  }

  void add(const Grid& grid, const std::vector<const Yaml*>& chosen, std::int64_t seed, bool main) {
    Point point;
    point.config = base;
    point.config.seed = seed;
    for (std::size_t i = 0; i < grid.size(); ++i) {
      config::load(point.config, config::nest(grid[i].key, *chosen[i]), path);
      point.varied.push_back(grid[i].key);
    }
    if (settings_before) point.config.model.from = std::string(kBefore);  // where that is, the point's command says
    point.seed = point.config.seed;
    point.settings = settings_of(point.config);
    try {
      point.config.resolve();
    } catch (const ConfigError& error) {
      std::string where;
      for (const std::string& key : point.varied)
        where += text(where.empty() ? "" : ", ", key, ": ", config::value_of(point.config, key));
      throw ConfigError(text(path, ": the point with ", where, ": ", error.what()));
    }
    point.main = main;
    require_source(point.config.data.source);
    std::string content = content_mark(point.config.data.source, contents);
    if (settings_before) {
      point.before = add_before(point);
      content += points_before[*point.before].id;
    }
    point.id = id_of(point, head.measure, content);
    if (ids.insert(point.id.substr(point.id.rfind('-'))).second) points.push_back(std::move(point));
  }

  // All combinations, the last key varying fastest, the seeds within each.
  void add_all(const Grid& grid, std::vector<const Yaml*>& chosen) {
    if (chosen.size() < grid.size()) {
      for (const Yaml& value : grid[chosen.size()].values) {
        chosen.push_back(&value);
        add_all(grid, chosen);
        chosen.pop_back();
      }
      return;
    }
    const bool own_seed = std::ranges::any_of(grid, [](const Axis& axis) { return axis.key == "seed"; });
    if (own_seed) return add(grid, chosen, base.seed, false);
    for (const std::int64_t seed : head.seeds) add(grid, chosen, seed, true);
  }
};

void refuse_varied(std::span<const std::string> overrides, const std::vector<Grid>& grids, const std::string& path) {
  for (const std::string& given : overrides) {
    const std::string key = given.substr(0, given.find('='));
    for (const Grid& grid : grids)
      for (const Axis& axis : grid)
        check<ConfigError>(key != axis.key, given, ": ", path, " varies ", axis.key, "; change its grid instead");
    check<ConfigError>(key != "seed", given, ": each point of ", path,
                       " is run with each of its seeds; change its "
                       "seeds: [...], or say how many with --seeds N");
  }
}

}  // namespace

std::string sweep_id(const std::string& path) {
  const Yaml tree = config::read_yaml(path);
  const Yaml* id = tree.find("id");
  return id ? id->text : "";
}

Sweep load_sweep(const std::string& path, std::span<const std::string> overrides, std::optional<std::int64_t> seeds) {
  const Yaml tree = config::read_yaml(path);
  if (tree.kind != Yaml::Kind::mapping || tree.children.empty())
    throw ConfigError(text(path, ": a sweep has base, grid, seeds and claims, and this file has no keys"));
  Sweep sweep;
  sweep.path = path;
  sweep.overrides.assign(overrides.begin(), overrides.end());
  sweep.seed_count = seeds;
  sweep.name = std::filesystem::path(path).stem().string();
  const std::initializer_list<std::string_view> parts{kBase, kGrid, kClaims, kMaps, kCurves, kBefore};
  refuse_unknown(path, tree, "a sweep", names_of(sweep.head, parts));
  config::load(sweep.head, without(tree, parts), path);
  if (sweep.head.title.empty()) sweep.head.title = sweep.name;
  std::vector<std::int64_t>& list = sweep.head.seeds;
  if (list.empty()) fail_at(path, *tree.find("seeds"), "seeds is empty; give one or more, or leave it out");
  if (std::set(list.begin(), list.end()).size() != list.size())
    fail_at(path, *tree.find("seeds"), "seeds has a value twice");
  if (seeds)
    for (list.resize(std::min(list.size(), static_cast<std::size_t>(*seeds))); std::ssize(list) < *seeds;)
      list.push_back(*std::ranges::max_element(list) + 1);
  for (const Yaml& item : items(path, tree, kClaims)) sweep.claims.push_back(read_claim(path, item));
  sweep.maps = read_views<MapView>(path, tree, kMaps, "a map");
  sweep.curves = read_views<CurveView>(path, tree, kCurves, "a curve");

  const std::vector<Grid> grids = read_grids(path, tree);
  refuse_varied(overrides, grids, path);
  RunConfig base = read_base(path, tree);
  config::apply_overrides(base, overrides);
  sweep.threads = base.train.threads;
  base.run.dir = std::nullopt;
  base.train.threads = std::nullopt;  // changes no result
  const Yaml* before = tree.find(kBefore);
  if (before != nullptr && before->kind != Yaml::Kind::mapping) fail_at(path, *before, "before is KEY: VALUE");
  PointMaker maker{path, sweep.head, base, before};
  for (const Grid& grid : grids) {
    std::vector<const Yaml*> chosen;
    maker.add_all(grid, chosen);
  }
  sweep.points = std::move(maker.points);
  check_against_points(sweep, tree);
  sweep.before = std::move(maker.points_before);
  return sweep;
}

}  // namespace normlab
