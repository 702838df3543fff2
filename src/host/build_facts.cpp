// What the program was compiled from, by and for. CMakeLists.txt defines what the compiler does not know.
#include "normlab/host/build_facts.h"

#include "normlab/host/processor_needs.h"

namespace normlab {

const BuildFacts& build_facts() {
  static constexpr BuildFacts facts{NORMLAB_VERSION, NORMLAB_COMMIT,
#ifdef __clang__
                                    "clang " __clang_version__,
#else
                                    "g++ " __VERSION__,
#endif
                                    NORMLAB_FLAGS, NORMLAB_OPENMP_VERSION};
  return facts;
}

std::string instruction_set() {
#if defined(__x86_64__)
  std::string sets = "x86-64";
#elif defined(__aarch64__)
  std::string sets = "aarch64";
#else
  std::string sets = "base";
#endif
  for (int bit = 0; instruction_set_name(bit) != nullptr; ++bit)
    if (kBuiltFor >> bit & 1u) sets += std::string(" ") + instruction_set_name(bit);
  return sets;
}

}  // namespace normlab
