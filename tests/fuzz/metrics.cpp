// metrics.jsonl of a run that is resumed: the lines that are kept are whole, of no later step, each once, and all of
// them are kept again.
#include "normlab/run/metrics.h"

#include <map>

#include "fuzz.h"
#include "normlab/formats/json.h"
#include "normlab/run/figures.h"

namespace normlab::fuzz {
namespace {

void look_at(std::string_view kept, const KeptLines& lines, std::int64_t step) {
  promise(kept.empty() || kept.back() == '\n', "whole lines are kept");
  const KeptLines again = kept_lines(kept, step, "kept");
  promise(again.bytes == lines.bytes && again.train_steps == lines.train_steps, "what is kept is kept again");
  std::map<std::string, std::int64_t> last;
  std::int64_t train_steps = 0;
  const bool checked = has_checksums(kept);
  while (!kept.empty()) {
    const std::string_view text = kept.substr(0, kept.find('\n'));
    kept.remove_prefix(text.size() + 1);
    promise(!checked || has_checksums(text), "every line has a checksum, or none");
    const Json line = parse_json(text, "line");
    const std::string kind = line.find("kind") ? line.at("kind").string() : "";
    const std::int64_t at = line.at("step").integer();
    promise(at >= 0 && at <= step, "no later step");
    const auto [place, is_new] = last.emplace(kind, at);
    promise(is_new || place->second < at, "each step once");
    place->second = at;
    train_steps += kind == "train";
  }
  promise(train_steps == lines.train_steps, "train lines are counted");
}

}  // namespace

void metrics(std::string_view bytes) {
  for (const std::int64_t step : {std::int64_t{0}, std::int64_t{3}, INT64_MAX}) {
    const auto lines = accepted([&] { return kept_lines(bytes, step, "metrics.jsonl"); });
    if (!lines) continue;
    promise(lines->bytes >= 0 && lines->bytes <= static_cast<std::int64_t>(bytes.size()), "a part of the file");
    look_at(bytes.substr(0, static_cast<std::size_t>(lines->bytes)), *lines, step);
  }
}

}  // namespace normlab::fuzz
