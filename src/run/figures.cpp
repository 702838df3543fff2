// Lines of a run's logs, taken apart.
#include "normlab/run/figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "normlab/run/checksum.h"

namespace normlab {
namespace {

// blocks.3.attn.qkv.weight -> 3 and attn.qkv.weight; blocks.3 -> 3 and block
void set_part(Figure& figure, std::string_view name) {
  constexpr std::string_view kPrefix = "blocks.";
  figure.part = name;
  figure.layer.reset();
  figure.of_model = true;
  if (!name.starts_with(kPrefix)) return;
  name.remove_prefix(kPrefix.size());
  const std::size_t dot = std::min(name.find('.'), name.size());
  const auto layer = parse_int(name.substr(0, dot));
  if (!layer) return;
  figure.layer = layer;
  figure.part = dot == name.size() ? "block" : name.substr(dot + 1);
}

// One member of a line.
class Collector {
 public:
  Collector(std::vector<Figure>& figures, bool is_finite) : figures_(figures), is_finite_(is_finite) {}

  void add(Figure figure, const Json& value) const {
    if (!value.is_number() && (!value.is_null() || is_finite_)) return;
    figure.value = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.real();
    figures_.push_back(std::move(figure));
  }

  // {"value", "error", ...} as NAME, NAME_error, ...; [low, high] as NAME_low, NAME_high; and a list of {"layer", ...}.
  void add_curvature(const Figure& figure, const Json& value) const {
    const auto add_named = [&](std::string_view suffix, std::string_view layer, const Json& number) {
      Figure named = figure;
      if (!layer.empty()) set_part(named, layer);
      if (!suffix.empty()) named.measure += text('_', suffix);
      add(std::move(named), number);
    };
    if (value.is_object()) {
      for (const Json::Member& each : value.members())
        add_named(each.name == "value" ? "" : std::string_view(each.name), "", each.value);
    } else if (value.is_array()) {
      bool low = true;
      for (const Json& each : value.elements()) {
        if (!each.is_object()) add_named(std::exchange(low, false) ? "low" : "high", "", each);
        for (const Json::Member& of_layer : each.is_object() ? each.members() : Json::Object())
          if (of_layer.name != "layer") add_named(of_layer.name, each.at("layer").string(), of_layer.value);
      }
    } else {
      add(figure, value);
    }
  }

 private:
  std::vector<Figure>& figures_;
  bool is_finite_;
};

Json parse_line(std::string_view line, const std::string& place) {
  Json json = parse_json(line, place);
  const Json* step = json.is_object() ? json.find("step") : nullptr;
  const Json* kind = json.is_object() ? json.find("kind") : nullptr;
  const auto number = step && step->is_number() ? parse_int(step->line()) : std::nullopt;
  check<DataError>(number && *number >= 0 && (!kind || kind->is_string()), place,
                   ": a line of a log is an object with a step");
  return json;
}

// Of a log whose other lines have checksums, or have none.
Json checked_line(std::string_view line, const std::string& place, bool others_have) {
  if (!claims_checksum(line, kLineSeal)) {
    Json json = parse_line(line, place);
    check<DataError>(!others_have, place, ": this line lacks its checksum, and others have theirs: it was edited");
    return json;
  }
  const std::string right = sealed(unsealed(line, kLineSeal), kLineSeal);
  check<DataError>(line == right, place, ": this line was damaged or edited: it ends in ",
                   line.substr(line.size() - 10), ", and by its checksum it should in ",
                   right.substr(right.size() - 10));
  return parse_line(text(unsealed(line, kLineSeal), '}'), place);
}

}  // namespace

std::string log_line(const Json& line) {
  std::string open = line.line();
  open.pop_back();
  return sealed(open, kLineSeal);
}

void LogWriter::write(const Json& line) {
  file_.line(log_line(line));
  if (listener_) listener_(line);
}

bool has_checksums(std::string_view jsonl) { return jsonl.find(kLineSeal.member) != std::string_view::npos; }

std::string with_checksums(std::string_view jsonl) {
  std::string out;
  for (std::size_t end; !jsonl.empty(); jsonl.remove_prefix(end + 1)) {
    end = jsonl.find('\n');
    out += sealed(jsonl.substr(0, end - 1), kLineSeal) + '\n';
  }
  return out;
}

void read_log(std::string_view jsonl, const std::string& path,
              const std::function<bool(const Json& line, const std::string& place, std::size_t end)>& act) {
  const bool checksums = has_checksums(jsonl);
  std::size_t begin = 0, end = 0;
  for (int number = 1; begin < jsonl.size(); begin = end + 1, ++number) {
    const std::string place = text(path, ':', number);
    end = jsonl.find('\n', begin);
    try {
      if (end == std::string_view::npos) {
        const std::string_view line = jsonl.substr(begin, jsonl.size() - 1 - begin);
        check<DataError>(line != sealed(unsealed(line, kLineSeal), kLineSeal), place,
                         ": this line was damaged: its line break is another character");
        return;
      }
      if (const Json line = checked_line(jsonl.substr(begin, end - begin), place, checksums);
          !act(line, place, end + 1))
        return;
    } catch (const DataError& error) {
      throw DataError(text(error.what(), "; put the line back as it was, or delete the file to go on without it"));
    }
  }
}

std::vector<Figure> figures_of(const Json& line) {
  std::vector<Figure> figures;
  const Json* kind = line.find("kind");
  const Collector collector(figures, line.find("finite") == nullptr);
  const std::int64_t step = line.at("step").integer();
  for (const Json::Member& member : line.members()) {
    if (member.name == "step" || member.name == "kind" || member.name == "finite") continue;
    Figure figure{step, std::nullopt, kind ? kind->string() : "timing", member.name, false};
    if (figure.part == "curvature") {
      collector.add_curvature(figure, member.value);
    } else if (member.value.is_array()) {
      const bool by_position = figure.measure == "loss_by_position";  // the others are by block
      figure.of_model = true;
      for (std::int64_t i = 0; const Json& value : member.value.elements()) {
        figure.part = by_position ? text("position.", i) : "block";
        if (!by_position) figure.layer = i;
        collector.add(figure, value);
        ++i;
      }
    } else if (member.value.is_object()) {
      for (const Json::Member& each : member.value.members())
        set_part(figure, each.name), collector.add(figure, each.value);
    } else {
      collector.add(figure, member.value);
    }
  }
  return figures;
}

std::string metrics_csv(std::string_view jsonl, const std::string& path) {
  std::string out = "step,layer,part,measure,value\n";
  read_log(jsonl, path, [&](const Json& line, const std::string&, std::size_t) {
    // No name has a comma, a quote or a line break, so nothing needs quotes.
    for (const Figure& figure : figures_of(line))
      out += text(figure.step, ',', figure.layer ? number(*figure.layer) : "", ',', figure.part, ',', figure.measure,
                  ',', std::isnan(figure.value) ? "NaN" : number(figure.value), '\n');
    return true;
  });
  return out;
}

}  // namespace normlab
