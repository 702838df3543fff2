// What the program was compiled from, by and for: the facts of run.json and --version.
#pragma once

#include <string>
#include <string_view>

namespace normlab {

struct BuildFacts {
  std::string_view version;
  std::string_view commit;    // empty when built outside of its git repository
  std::string_view compiler;  // "g++ 12.2.0"
  std::string_view flags;     // those that may change what is computed or how fast
  std::string_view openmp;    // the version of the standard; empty without
};
const BuildFacts& build_facts();

// "x86-64 sse3 avx2 fma": the base and what this build uses beyond it.
std::string instruction_set();

}  // namespace normlab
