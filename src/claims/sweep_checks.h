// What is wrong with a sweep's file, found before anything runs: ConfigError with the file, and the line where there
// is one.
#pragma once

#include <string>
#include <string_view>

#include "normlab/claims/sweep_file.h"

namespace normlab {

[[noreturn]] void fail_at(const std::string& path, const config::Yaml& at, std::string_view what);

// A key that `item` does not know is refused, with the nearest that it does; `what`: "a claim".
void refuse_unknown(const std::string& path, const config::Yaml& item, std::string_view what,
                    const std::vector<std::string>& known);

void check_claim(const std::string& path, const config::Yaml& item, const Claim& claim);
void check_view(const std::string& path, const config::Yaml& item, const MapView& map);
void check_view(const std::string& path, const config::Yaml& item, const CurveView& curve);

// Claims that no measurement can decide: of no points, of points without a counterpart, along no key; pictures of no
// points; values that no run has.
void check_against_points(const Sweep& sweep, const config::Yaml& tree);

}  // namespace normlab
