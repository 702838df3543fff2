// Which instructions this build uses beyond the base of x86-64, and whether a processor has them. The check runs where
// nothing else of the program may run, so it uses no library code and no inline function. Elsewhere: nothing to check.
#pragma once

#include <cstddef>

namespace normlab {

// X(name, macro): a set of instructions that a compiler may use by itself, and the macro that is 1 when it may.
#if defined(__x86_64__)
// clang-format off
#define NORMLAB_INSTRUCTION_SETS(X) \
  X("sse3", __SSE3__) X("ssse3", __SSSE3__) X("sse4.1", __SSE4_1__) X("sse4.2", __SSE4_2__) \
  X("popcnt", __POPCNT__) X("avx", __AVX__) X("avx2", __AVX2__) X("fma", __FMA__) X("bmi", __BMI__) \
  X("bmi2", __BMI2__) X("fma4", __FMA4__) X("xop", __XOP__) X("avx512f", __AVX512F__) \
  X("avx512cd", __AVX512CD__) X("avx512dq", __AVX512DQ__) X("avx512bw", __AVX512BW__) \
  X("avx512vl", __AVX512VL__) X("avx512ifma", __AVX512IFMA__) X("avx512vbmi", __AVX512VBMI__) \
  X("avx512vbmi2", __AVX512VBMI2__) X("avx512vnni", __AVX512VNNI__) X("avx512bitalg", __AVX512BITALG__) \
  X("avx512vpopcntdq", __AVX512VPOPCNTDQ__) X("avx512bf16", __AVX512BF16__) X("gfni", __GFNI__)
// clang-format on
#else
#define NORMLAB_INSTRUCTION_SETS(X)
#endif

// One bit for each line of the list, the first the lowest.
using InstructionBits = unsigned;

// What this build uses. Constant data: to read it runs no code of the build.
extern const InstructionBits kBuiltFor;

// What the processor and the system that runs on it have.
InstructionBits supported_instructions();

// The name of a bit (0, 1, ...), or a null pointer after the last.
const char* instruction_set_name(int bit);

// Writes the message for a processor that lacks something, ended by '\0' and cut to `capacity`, and returns its length;
// 0 when nothing is missing.
std::size_t missing_instructions(InstructionBits built_for, InstructionBits supported, char* message,
                                 std::size_t capacity);

}  // namespace normlab
