// What the processor has, and the message when it lacks something. Compiled for the base of the architecture, without
// library code and inline functions, of which the linker might keep a copy that was compiled for more.
#include "normlab/host/processor_needs.h"

namespace normlab {

namespace {

#define NORMLAB_NAME(name, macro) name,
constexpr const char* kNames[] = {NORMLAB_INSTRUCTION_SETS(NORMLAB_NAME) nullptr};

struct Message {
  char* out;
  std::size_t capacity, length;

  void add(const char* part) {
    for (; *part != '\0' && length + 1 < capacity; ++part) out[length++] = *part;
    out[length] = '\0';
  }
  void add_names(InstructionBits bits) {
    for (int i = 0; kNames[i] != nullptr; ++i) {
      if ((bits >> i & 1u) == 0) continue;
      add(" ");
      add(kNames[i]);
    }
  }
};

}  // namespace

InstructionBits supported_instructions() {
  InstructionBits bits = 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  InstructionBits bit = 1;
#define NORMLAB_SUPPORTED(name, macro)           \
  if (__builtin_cpu_supports(name)) bits |= bit; \
  bit <<= 1;
  NORMLAB_INSTRUCTION_SETS(NORMLAB_SUPPORTED)
#endif
  return bits;
}

const char* instruction_set_name(int bit) { return kNames[bit]; }

std::size_t missing_instructions(InstructionBits built_for, InstructionBits supported, char* message,
                                 std::size_t capacity) {
  const InstructionBits missing = built_for & ~supported;
  if (missing == 0) return 0;
  Message text{message, capacity, 0};
  text.add("normlab: this program was built for a processor with");
  text.add_names(built_for);
  text.add(", but this one has no");
  text.add_names(missing);
  text.add(
      ". Build it again on this machine, or for every machine by\n"
      "  cmake -S . -B build -DNORMLAB_NATIVE=OFF && cmake --build build\n");
  return text.length;
}

}  // namespace normlab
