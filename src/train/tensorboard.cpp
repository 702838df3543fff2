// Lines of a run's logs as records of an event file.
#include "normlab/train/tensorboard.h"

#include <unistd.h>

#include <array>
#include <chrono>

#include "normlab/base/check.h"
#include "normlab/formats/event_file.h"
#include "normlab/train/terminal.h"
#include "normlab/train/tidy.h"

namespace normlab {
namespace {

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string file_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"localhost"};
  return text("events.out.tfevents.", static_cast<std::int64_t>(wall_time()), '.', host.data());
}

std::string tag_of(const Figure& figure) {
  if (!figure.of_model) return text(figure.part, '/', figure.measure);
  if (!figure.layer) return text(figure.measure, '/', figure.part);
  if (figure.part == "block") return text(figure.measure, "/block.", *figure.layer);
  return text(figure.measure, "/blocks.", *figure.layer, '.', figure.part);
}

}  // namespace

TensorBoardLog::TensorBoardLog(const std::string& directory, std::int64_t first, std::string_view config)
    : file_(text(directory, '/', file_name()), LineWriter::Start::append) {
  file_.bytes(version_event(wall_time()));
  if (first > 0) file_.bytes(restart_event(wall_time(), first + 1));
  file_.bytes(text_event(wall_time(), "config", indented(config)));  // as Markdown, which keeps such lines
}

void TensorBoardLog::add_line(std::string_view line) {
  const Json json = parse_json(line, "metrics");
  std::vector<EventScalar> scalars;
  for (const Figure& figure : figures_of(json)) scalars.push_back({tag_of(figure), static_cast<float>(figure.value)});
  if (!scalars.empty()) file_.bytes(scalar_event(wall_time(), json.at("step").integer(), scalars));
}

}  // namespace normlab
