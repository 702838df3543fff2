// What the compiler was allowed to use, as constant data. Compiled with the flags of the whole build.
#include "normlab/host/processor_needs.h"

namespace normlab {

// A macro that is defined is 1; one that is not stays its own name.
#define NORMLAB_AS_TEXT(macro) #macro
#define NORMLAB_USED(name, macro) NORMLAB_AS_TEXT(macro)[0] == '1',
constexpr bool kUsed[] = {NORMLAB_INSTRUCTION_SETS(NORMLAB_USED) false};

constexpr InstructionBits bits_of_used() {
  InstructionBits bits = 0;
  for (unsigned i = 0; i < sizeof kUsed; ++i) bits |= InstructionBits{kUsed[i]} << i;
  return bits;
}

constinit const InstructionBits kBuiltFor = bits_of_used();

}  // namespace normlab
