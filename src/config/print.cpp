// The keys of a struct as text: resolved configuration, help, table.
#include <algorithm>

#include "normlab/config/loader.h"

namespace normlab::config {
namespace {

std::string indentation(const Key& key) {
  return std::string(2 * static_cast<std::size_t>(std::count(key.path.begin(), key.path.end(), '.')), ' ');
}

// "model:" or "  norm: layer"
std::string entry(const Key& key) {
  std::string line = text(indentation(key), key.name(), ":");
  if (!key.is_section()) line += text(" ", key.value());
  return line;
}

// A file's name may hold anything but may not break the comment that it stands in.
std::string origin_of(const Key& key, const Origins& origins) {
  const auto it = origins.find(key.path);
  return it == origins.end() ? "default" : one_line(it->second);
}

// Type and range: "an integer, at least 1".
std::string takes(const Key& key) {
  const std::string range = key.range.describe();
  return range.empty() ? key.type : text(key.type, ", ", range);
}

std::string table_cell(std::string_view s) {
  std::string out;
  for (const char c : s) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string dump_keys(const Keys& keys, const Origins* origins) {
  constexpr std::size_t kWidest = 48;  // a longer value pushes its own comment out, not all the others
  std::size_t width = 0;
  for (const Key& key : keys) {
    const std::size_t size = entry(key).size();
    if (size <= kWidest) width = std::max(width, size);
  }
  std::string out;
  for (const Key& key : keys) {
    std::string line = entry(key);
    if (origins != nullptr && !key.is_section()) {
      line.resize(std::max(width, line.size()), ' ');
      line += text("  # ", origin_of(key, *origins));
    }
    out += line + '\n';
  }
  return out;
}

std::string help_keys(const Keys& keys) {
  std::string out;
  for (const Key& key : keys) {
    const std::string indent = indentation(key);
    if (key.is_section()) out += '\n';
    out += text(indent, "# ", key.help, '\n');
    if (!key.is_section()) out += text(indent, "# ", takes(key), '\n');
    out += entry(key) + '\n';
  }
  return out;
}

std::string table_keys(const Keys& keys) {
  std::string out = "| key | default | range | meaning |\n|---|---|---|---|\n";
  for (const Key& key : keys)
    if (!key.is_section())
      out += text("| `", key.path, "` | `", table_cell(key.value()), "` | ", table_cell(takes(key)), " | ",
                  table_cell(key.help), " |\n");
  return out;
}

}  // namespace normlab::config
