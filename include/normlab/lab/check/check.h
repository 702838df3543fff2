// The sanity checks of a configuration: does its gradient belong to its loss, does it start where it should, does every
// parameter learn, and does any output depend on what it must not see. All in double.
#pragma once

#include "normlab/lab/check/check_report.h"

namespace normlab {

#ifdef NORMLAB_DOUBLE
inline
#endif
    namespace f64 {
CheckReport run_checks(const CheckInput& input);
}

}  // namespace normlab
