// The precision of a translation unit. Sources that mention Real are compiled twice, in the inline
// namespaces f32 and f64; one program holds both. Everything else stays outside of the two.
#pragma once

#include <cstdint>

namespace normlab {
#ifdef NORMLAB_DOUBLE
#define NORMLAB_REAL f64
namespace f32 {}
inline namespace f64 {
using Real = double;
}
#else
#define NORMLAB_REAL f32
namespace f64 {}
inline namespace f32 {
using Real = float;
}
#endif

using Index = std::int64_t;

}  // namespace normlab
