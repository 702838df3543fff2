// Errors: what went wrong decides the exit code, the message says where, what was found, what to do.
#pragma once

#include <stdexcept>
#include <string>

#include "normlab/base/text.h"

namespace normlab {

// The caller of an op broke its contract: a defect of the program, not of the user's input.
struct ShapeError : std::logic_error {
  using std::logic_error::logic_error;
};

// What the user typed or fed is wrong: exit code 2.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct ConfigError : UserError {
  using UserError::UserError;
};
struct DataError : UserError {
  using UserError::UserError;
};

// The system refused (disk, permission, memory): exit code 4.
struct SystemError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws E with the parts joined as text unless `ok`.
template <class E = ShapeError, class... Parts>
void check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    throw E(text(parts...));
}

}  // namespace normlab
