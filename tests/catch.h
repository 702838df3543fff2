// Catch2, version 2 (one header) or 3.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
namespace catch_matchers {
using Catch::Matchers::ContainsSubstring;
}
#else
#include <catch2/catch.hpp>
namespace catch_matchers {
inline auto ContainsSubstring(const std::string& s) { return Catch::Matchers::Contains(s); }
}  // namespace catch_matchers
#endif
using catch_matchers::ContainsSubstring;
