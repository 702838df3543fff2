// Lines of a run's logs as records of an event file.
#include "normlab/run/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include "normlab/base/check.h"
#include "normlab/formats/event_file.h"
#include "normlab/run/figures.h"
#include "normlab/run/terminal.h"

namespace normlab {
namespace {

double clock_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Cuts the files of a run that goes on; the path of the next one.
std::string next_file(const std::string& directory, std::int64_t first, double& latest) {
  constexpr std::string_view kHead = "events.out.tfevents.";
  auto seconds = static_cast<std::int64_t>(clock_time());
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string(), path = entry.path().string();
    if (!name.starts_with(kHead) || !entry.is_regular_file()) continue;
    if (const auto of_name = parse_int(name.substr(kHead.size(), name.find('.', kHead.size()) - kHead.size())))
      seconds = std::max(seconds, *of_name + 1);
    const std::string bytes = read_file(path), kept = events_before(bytes, first, latest);
    if (kept.size() < bytes.size()) write_file(path, kept);
  }
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"localhost"};
  return text(directory, '/', kHead, seconds, '.', host.data());
}

std::string tag_of(const Figure& figure) {
  if (!figure.of_model) return text(figure.part, '/', figure.measure);
  if (!figure.layer) return text(figure.measure, '/', figure.part);
  if (figure.part == "block") return text(figure.measure, "/block.", *figure.layer);
  return text(figure.measure, "/blocks.", *figure.layer, '.', figure.part);
}

}  // namespace

TensorBoardLog::TensorBoardLog(const std::string& directory, std::int64_t first, std::string_view config)
    : file_(next_file(directory, first, latest_), LineWriter::Start::append) {
  file_.bytes(version_event(wall_time()));
  if (first > 0) file_.bytes(restart_event(wall_time(), first));            // for a program that has read more of them
  file_.bytes(text_event(wall_time(), first, "config", indented(config)));  // as Markdown, which keeps such lines
}

double TensorBoardLog::wall_time() { return latest_ = std::max(latest_, clock_time()); }

void TensorBoardLog::add_line(const Json& line) {
  std::vector<EventScalar> scalars;
  for (const Figure& figure : figures_of(line)) scalars.push_back({tag_of(figure), static_cast<float>(figure.value)});
  if (!scalars.empty()) file_.bytes(scalar_event(wall_time(), line.at("step").integer(), scalars));
}

}  // namespace normlab
