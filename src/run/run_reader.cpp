// Reading a run's directory, and values by their path.
#include "normlab/run/run_reader.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "normlab/base/did_you_mean.h"
#include "normlab/base/utf8.h"
#include "normlab/config/loader.h"
#include "normlab/host/files.h"
#include "normlab/run/figures.h"
#include "normlab/run/run.h"
#include "normlab/run/run_directory.h"

namespace normlab {
namespace {

constexpr std::string_view kEntropies[] = {"unigram", "bigram", "floor", "ln_vocab"};

std::optional<double> real_of(const Json* value) {
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->real();
}

// The member of an array that a path leads into, and the rest of the path.
const Json* in_array(const Json& array, std::string_view path) {
  const Json::Array& elements = array.elements();
  const std::size_t dot = path.find('.');
  const std::string_view rest = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  if (const auto index = parse_int(path.substr(0, dot))) {
    const std::int64_t at = *index < 0 ? *index + std::ssize(elements) : *index;
    return at >= 0 && at < std::ssize(elements) ? at_path(elements[static_cast<std::size_t>(at)], rest) : nullptr;
  }
  for (const Json& element : elements) {
    const Json* name = element.is_object() ? element.find("name") : nullptr;
    if (name == nullptr || !name->is_string() || !path.starts_with(name->string())) continue;
    const std::string_view behind = path.substr(name->string().size());
    if (behind.empty()) return &element;
    if (!behind.starts_with('.')) continue;
    if (const Json* found = at_path(element, behind.substr(1))) return found;
  }
  return nullptr;
}

std::string with_last_block(std::string_view path, std::int64_t blocks) {
  constexpr std::string_view kLast = "blocks.-1.";
  std::string out(path);
  if (const std::size_t at = out.find(kLast); at != std::string::npos)
    out.replace(at, kLast.size(), text("blocks.", blocks - 1, "."));
  return out;
}

// Where the validation loss crosses `bound`, in steps.
std::optional<double> steps_to(const RunFiles& run, double bound) {
  std::optional<std::pair<double, double>> last;
  for (const Json& line : run.kind("eval")) {
    const auto loss = real_of(line.find("loss"));
    const double step = line.at("step").real();
    if (!loss) break;
    if (*loss <= bound)
      return last ? last->first + (step - last->first) * (last->second - bound) / (last->second - *loss) : step;
    last = {step, *loss};
  }
  return std::nullopt;
}

std::map<std::string, double, std::less<>> entropies_of(const RunFiles& run) {
  std::map<std::string, double, std::less<>> out;
  for (const std::string_view name : kEntropies)
    if (const auto value = run.entropy(name)) out.emplace(name, *value);
  return out;
}

std::optional<double> mean_from(const std::vector<Json>& lines, std::int64_t step, const std::string& path) {
  double sum = 0, count = 0;
  for (const Json& line : lines) {
    if (line.at("step").integer() < step) continue;
    const auto value = real_of(at_path(line, path));
    if (!value) return std::nullopt;
    sum += *value;
    ++count;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

constexpr std::string_view kStepsTo = "steps_to ";
constexpr std::string_view kKinds[] = {"train", "eval", "layers", "curvature"};

// A field of a run, without quotients and steps_to: KIND.PATH, with the step after @.
struct RunField {
  std::string_view kind, path;
  std::optional<std::int64_t> step;
  bool and_later = false;
};

RunField parsed(std::string_view field) {
  if (field == "val_loss") field = "eval.loss";
  const std::size_t at = field.rfind('@'), dot = field.find('.');
  check<DataError>(dot != std::string_view::npos && dot < at, "'", field,
                   "' is no value of a run; val_loss, eval.loss@200 and layers.token_cosine.-1 are");
  RunField out{field.substr(0, dot), field.substr(dot + 1, std::min(at, field.size()) - dot - 1), {}};
  if (at == std::string_view::npos) return out;
  std::string_view digits = field.substr(at + 1);
  out.and_later = digits.ends_with("..");
  if (out.and_later) digits.remove_suffix(2);
  out.step = parse_int(digits);
  check<DataError>(out.step.has_value(), "'", field, "': after @ comes a step, or a step and ..");
  return out;
}

// Without quotients.
std::optional<double> plain_field(const RunFiles& run, std::string_view field) {
  if (field.starts_with(kStepsTo)) {
    const auto bound = bound_of(field.substr(kStepsTo.size()), entropies_of(run));
    return bound ? steps_to(run, *bound) : std::nullopt;
  }
  const RunField parts = parsed(field);
  const std::vector<Json>& lines = run.kind(parts.kind);
  const std::string path = with_last_block(parts.path, run.config.model.n_layers);
  if (!parts.step) return lines.empty() ? std::nullopt : real_of(at_path(lines.back(), path));
  if (parts.and_later) return mean_from(lines, *parts.step, path);
  for (const Json& line : lines)
    if (line.at("step").integer() == *parts.step) return real_of(at_path(line, path));
  return std::nullopt;
}

bool has_plain_field(const RunFiles& run, std::string_view field) {
  if (field.starts_with(kStepsTo)) return bound_of(field.substr(kStepsTo.size()), entropies_of(run)).has_value();
  const RunField parts = parsed(field);
  const std::string path = with_last_block(parts.path, run.config.model.n_layers);
  return std::ranges::any_of(run.kind(parts.kind), [&](const Json& line) {
    const std::int64_t step = line.at("step").integer();
    return (!parts.step || step == *parts.step || (parts.and_later && step > *parts.step)) && at_path(line, path);
  });
}

void check_plain_field(std::string_view field, std::int64_t steps) {
  if (field.starts_with(kStepsTo)) {
    bound_of(field.substr(kStepsTo.size()), {});
    return;
  }
  const RunField parts = parsed(field);
  if (std::ranges::find(kKinds, parts.kind) == std::end(kKinds)) {
    const std::vector<std::string> kinds(std::begin(kKinds), std::end(kKinds));
    throw DataError(text("'", field, "': a run has no lines of kind '", parts.kind, "'",
                         did_you_mean(parts.kind, kinds, text("; it has ", join(kinds, ", ")))));
  }
  check<DataError>(!parts.step || (*parts.step >= 0 && *parts.step <= steps), "'", field, "': the run has ", steps,
                   " steps");
}

std::pair<std::string_view, std::string_view> parts_of_quotient(std::string_view field) {
  const std::size_t slash = field.find(" / ");
  if (slash == std::string_view::npos) return {trimmed(field), ""};
  return {trimmed(field.substr(0, slash)), trimmed(field.substr(slash + 3))};
}

template <class Plain>
std::optional<double> with_quotient(std::string_view field, Plain plain) {
  const auto [above, below] = parts_of_quotient(field);
  const auto a = plain(above);
  if (below.empty()) return a;
  const auto b = plain(below);
  return a && b && *b != 0 ? std::optional(*a / *b) : std::nullopt;
}

// Paths of the numbers in a document, those of an array by its last element.
void add_paths(const Json& value, const std::string& path, std::vector<std::string>& out) {
  const auto below = [&](std::string_view name) { return text(path, path.empty() ? "" : ".", name); };
  if (value.is_object()) {
    for (const Json::Member& member : value.members()) add_paths(member.value, below(member.name), out);
  } else if (value.is_array()) {
    if (!value.elements().empty() && !value.elements()[0].is_object())
      return add_paths(value.elements().back(), below("-1"), out);
    for (const Json& element : value.elements())
      if (const Json* name = element.find("name"); name && name->is_string())
        add_paths(element, below(name->string()), out);
  } else {
    out.push_back(path);
  }
}

std::string suggested(std::string_view name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  // The same but for a place in an array, counted from the end.
  const std::size_t dot = near.rfind('.');
  if (near.substr(dot + 1) == "-1" && name.substr(0, name.rfind('.')) == near.substr(0, dot))
    return text("; ", near.substr(0, dot), " has no entry ", name.substr(name.rfind('.') + 1));
  return did_you_mean(name, known, "; metrics.jsonl, or the command's --json document, has the names");
}

}  // namespace

Settings settings_of(const RunConfig& config) {
  RunConfig copy = config;
  Settings out;
  for (const config::Key& key : config::keys_of(copy))
    if (!key.is_section()) out.emplace(key.path, key.value());
  return out;
}

const std::vector<Json>& RunFiles::kind(std::string_view name) const {
  static const std::vector<Json> none;
  const auto found = lines.find(name);
  return found == lines.end() ? none : found->second;
}

std::string RunFiles::outcome() const { return record.at("outcome").string(); }

std::string RunFiles::reason() const {
  const Json* reason = record.find("reason");
  return reason && reason->is_string() ? reason->string() : "";
}

std::optional<double> RunFiles::entropy(std::string_view name) const {
  if (name != "ln_vocab") return real_of(record.find(name));
  const auto vocabulary = real_of(record.find("vocab_size"));
  return vocabulary ? std::optional(std::log(*vocabulary)) : std::nullopt;
}

bool is_run(const std::string& directory) {
  return std::filesystem::exists(text(directory, "/run.json")) &&
         std::filesystem::exists(text(directory, "/config.yaml"));
}

RunFiles read_run(const std::string& directory) {
  check<DataError>(is_run(directory), directory,
                   ": this is no directory of a run: it lacks run.json or config.yaml; "
                   "name one that normlab train wrote");
  RunFiles run{directory, config_of_run(directory), read_run_record(directory), {}};
  if (run.outcome() == "running" && unsaid_end(directory)) run.record.set("outcome", "interrupted");
  const std::string metrics = text(directory, "/metrics.jsonl");
  if (!std::filesystem::exists(metrics)) return run;
  const std::string log = read_file(metrics);
  read_log(log, metrics, [&](const Json& line, const std::string& place, std::size_t) {
    const Json* kind = line.find("kind");
    check<DataError>(kind != nullptr, place, ": a line of metrics has a kind");
    run.lines[kind->string()].push_back(line);
    return true;
  });
  check_metrics(run.record, log, metrics);
  return run;
}

const Json* at_path(const Json& root, std::string_view path) {
  if (path.empty()) return &root;
  if (root.is_array()) return in_array(root, path);
  if (!root.is_object()) return nullptr;
  for (std::size_t end = path.size(); end != std::string_view::npos;
       end = end == 0 ? end - 1 : path.rfind('.', end - 1)) {
    const Json* member = root.find(path.substr(0, end));
    if (member == nullptr) continue;
    if (const Json* found = at_path(*member, end < path.size() ? path.substr(end + 1) : std::string_view()))
      return found;
  }
  return nullptr;
}

std::optional<double> field_of(const RunFiles& run, std::string_view field) {
  return with_quotient(field, [&](std::string_view plain) { return plain_field(run, plain); });
}

std::optional<double> field_of(const Json& document, std::string_view field) {
  return with_quotient(field, [&](std::string_view plain) { return real_of(at_path(document, plain)); });
}

bool has_field(const RunFiles& run, std::string_view field) {
  const auto [above, below] = parts_of_quotient(field);
  return has_plain_field(run, above) && (below.empty() || has_plain_field(run, below));
}

bool has_field(const Json& document, std::string_view field) {
  const auto [above, below] = parts_of_quotient(field);
  return at_path(document, above) && (below.empty() || at_path(document, below));
}

std::string why_missing(const RunFiles& run, std::string_view field) {
  const auto [above, below] = parts_of_quotient(field);
  const std::string_view part = has_plain_field(run, above) ? below : above;
  if (part.empty() || part.starts_with(kStepsTo)) return "";
  const RunField parts = parsed(part);
  const std::vector<Json>& lines = run.kind(parts.kind);
  if (lines.empty()) return text("; the run has no lines of kind ", parts.kind);
  if (at_path(lines.back(), with_last_block(parts.path, run.config.model.n_layers)) != nullptr)
    return text("; the lines of kind ", parts.kind, " are of steps ", lines[0].at("step").integer(),
                lines.size() > 1 ? text(", ", lines[1].at("step").integer()) : "",
                lines.size() > 2 ? text(", ... ", lines.back().at("step").integer()) : "");
  std::vector<std::string> known;
  add_paths(lines.back(), std::string(parts.kind), known);
  return suggested(part.substr(0, part.rfind('@')), known);
}

std::string why_missing(const Json& document, std::string_view field) {
  const auto [above, below] = parts_of_quotient(field);
  std::vector<std::string> known;
  add_paths(document, "", known);
  return suggested(at_path(document, above) ? below : above, known);
}

void check_run_field(std::string_view field, std::int64_t steps) {
  const auto [above, below] = parts_of_quotient(field);
  check_plain_field(above, steps);
  if (!below.empty()) check_plain_field(below, steps);
}

std::optional<double> bound_of(std::string_view bound, const std::map<std::string, double, std::less<>>& entropies) {
  bound = trimmed(bound);
  if (const auto number = parse_double(bound)) return number;
  const std::size_t end = bound.find(' ');
  const std::string_view name = bound.substr(0, end);
  check<DataError>(
      std::ranges::find(kEntropies, name) != std::end(kEntropies), "'", bound,
      "' is no bound; a number is, or one of unigram, bigram, floor, ln_vocab, followed by '+ 0.1' or '- 0.1'");
  double margin = 0;
  if (end != std::string_view::npos) {
    std::string_view rest = trimmed(bound.substr(end));
    const bool minus = rest.starts_with('-');
    check<DataError>(minus || rest.starts_with('+'), "'", bound, "': after ", name, " comes '+ 0.1' or '- 0.1'");
    const auto amount = parse_double(trimmed(rest.substr(1)));
    check<DataError>(amount.has_value(), "'", bound, "': '", rest.substr(1), "' is no number");
    margin = minus ? -*amount : *amount;
  }
  const auto found = entropies.find(name);
  return found == entropies.end() ? std::nullopt : std::optional(found->second + margin);
}

std::string shown(const std::string& value) {
  const auto real = parse_double(value);
  const auto rounded = real && !parse_int(value) ? parse_double(significant(*real, 12)) : std::nullopt;
  return rounded ? number(*rounded) : value;
}

std::vector<std::string> shown(const std::vector<std::string>& values) {
  std::vector<std::string> out;
  for (const std::string& value : values) out.push_back(shown(value));
  return std::set(out.begin(), out.end()).size() == std::set(values.begin(), values.end()).size() ? out : values;
}

}  // namespace normlab
