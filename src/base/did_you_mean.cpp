// What somebody who wrote a name that does not exist may have meant.
#include "normlab/base/did_you_mean.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "normlab/base/text.h"

namespace normlab {
namespace {

char folded(char c) {
  if (c == '-') return '_';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Levenshtein's distance where swapped neighbours are one change too (optimal string alignment), three rows at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1), last, before;
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto differ = [&](std::size_t m, std::size_t n) { return folded(a[i - m]) != folded(b[j - n]); };
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + differ(1, 1)});
      if (i > 1 && j > 1 && !differ(1, 2) && !differ(2, 1)) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// Whether one is the beginning of the other, with at least three letters.
bool begins(std::string_view a, std::string_view b) {
  const std::size_t length = std::min(a.size(), b.size());
  return length >= 3 && edit_distance(a.substr(0, length), b.substr(0, length)) == 0;
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best, longest;
  std::size_t lowest = 2 * std::max<std::size_t>(name.size() / 3, 1) + 2;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    const std::size_t cost = 2 * distance + (edit_distance(name.substr(0, 1), candidate.substr(0, 1)) > 0);
    if (cost < lowest && distance < std::max(name.size(), candidate.size())) {
      best = candidate;
      lowest = cost;
    }
    if (candidate.size() > longest.size() && begins(name, candidate)) longest = candidate;
  }
  return best.empty() ? longest : best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view otherwise) {
  const std::string near = nearest(name, candidates);
  return near.empty() ? std::string(otherwise) : text("; did you mean '", near, "'?");
}

}  // namespace normlab
