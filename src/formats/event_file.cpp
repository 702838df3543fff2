// Records of TensorBoard's event files.
#include "normlab/formats/event_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "normlab/formats/crc32c.h"

namespace normlab {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Protocol buffers: a field is its number and wire type, then its value.
enum Wire : std::uint64_t { varint_wire = 0, double_wire = 1, bytes_wire = 2, float_wire = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}
std::string key(std::uint64_t field, Wire wire) { return varint(field << 3 | wire); }
std::string field(std::uint64_t number, double value) { return key(number, double_wire) + bytes_of(value); }
std::string field(std::uint64_t number, float value) { return key(number, float_wire) + bytes_of(value); }
std::string field(std::uint64_t number, std::int64_t value) {
  return key(number, varint_wire) + varint(static_cast<std::uint64_t>(value));
}
std::string field(std::uint64_t number, std::string_view value) {
  return key(number, bytes_wire) + varint(value.size()) + std::string(value);
}

std::string masked_crc(std::string_view data) {
  return bytes_of<std::uint32_t>(std::rotr(crc32c(data), 15) + 0xA282EAD8u);
}

std::string record(std::string_view event) {
  const std::string length = bytes_of<std::uint64_t>(event.size());
  return length + masked_crc(length) + std::string(event) + masked_crc(event);
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7. Summary: repeated value = 1.
// Value: tag = 1, simple_value = 2, tensor = 8, metadata = 9.
std::string event(double wall_time, std::int64_t step) { return field(1, wall_time) + field(2, step); }

}  // namespace

std::string version_event(double wall_time) {
  return record(field(1, wall_time) + field(3, std::string_view("brain.Event:2")));
}

std::string restart_event(double wall_time, std::int64_t step) {
  constexpr std::int64_t kStart = 1;  // SessionLog.status = 1
  return record(event(wall_time, step) + field(7, field(1, kStart)));
}

std::string scalar_event(double wall_time, std::int64_t step, std::span<const EventScalar> scalars) {
  std::string summary;
  for (const EventScalar& scalar : scalars) summary += field(1, field(1, scalar.tag) + field(2, scalar.value));
  return record(event(wall_time, step) + field(5, summary));
}

std::string events_before(std::string_view file, std::int64_t step, double& latest) {
  std::string kept;
  while (file.size() >= 12) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), 8);
    if (length > file.size() || length + 16 > file.size() ||
        record(file.substr(12, length)) != file.substr(0, length + 16))
      break;
    const std::string_view data = file.substr(12, length);
    double wall_time = 0;
    std::int64_t at = 0;  // events as above begin with their wall time and, after it, their step
    if (length > 9) std::memcpy(&wall_time, data.data() + 1, 8);
    if (length > 9 && data.substr(9, 1) == key(2, varint_wire))
      for (std::size_t i = 10, shift = 0; i < length && shift < 63; ++i, shift += 7) {
        at |= static_cast<std::int64_t>(data[i] & 0x7F) << shift;
        if (!(data[i] & 0x80)) break;
      }
    if (at < step) kept += file.substr(0, length + 16), latest = std::max(latest, wall_time);
    file.remove_prefix(length + 16);
  }
  return kept + std::string(file);
}

std::string text_event(double wall_time, std::int64_t step, std::string_view tag, std::string_view markdown) {
  constexpr std::int64_t kString = 7;                                       // TensorProto.dtype = 1
  const std::string tensor = field(1, kString) + field(8, markdown);        // string_val = 8; without axes
  const std::string plugin = field(1, field(1, std::string_view("text")));  // SummaryMetadata.plugin_data.plugin_name
  return record(event(wall_time, step) + field(5, field(1, field(1, tag) + field(8, tensor) + field(9, plugin))));
}

}  // namespace normlab
