// Event files of TensorBoard: records (length, checksum, data, checksum, as in TFRecord) of protocol buffers
// (tensorflow event.proto, summary.proto). Each function gives the bytes of one whole record. `wall_time`: seconds
// since 1970.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace normlab {

struct EventScalar {
  std::string tag;  // "group/name"
  float value;
};

// The first record of every file.
std::string version_event(double wall_time);
// What the directory's other files say of `step` and later steps is void.
std::string restart_event(double wall_time, std::int64_t step);
std::string scalar_event(double wall_time, std::int64_t step, std::span<const EventScalar> scalars);
// A file without its records of `step` and later ones; what lies after a damaged one stays as it is. `latest` is
// raised to their wall times.
std::string events_before(std::string_view file, std::int64_t step, double& latest);
// Markdown for the text page.
std::string text_event(double wall_time, std::int64_t step, std::string_view tag, std::string_view markdown);

}  // namespace normlab
