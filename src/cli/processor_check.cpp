// Stops the program before anything else of it runs, static initialisers included, on a processor that lacks what it
// was built for. Compiled for the base of the architecture.
#include <unistd.h>

#include "normlab/host/processor_needs.h"

namespace {

[[gnu::constructor(101)]] void check_processor() {  // 101: the first priority that is not the compiler's own
  char message[1024];
  const auto length =
      normlab::missing_instructions(normlab::kBuiltFor, normlab::supported_instructions(), message, sizeof message);
  if (length == 0) return;
  const auto written = ::write(2, message, length);
  ::_exit(written < 0 ? 4 : 2);
}

}  // namespace
