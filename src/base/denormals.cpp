// The control register of the floating-point unit.
#include "normlab/base/denormals.h"

#include <cstdint>

namespace normlab {

#if defined(__x86_64__)
namespace {
constexpr unsigned kFlush = 0x8040;  // FTZ (bit 15): results; DAZ (bit 6): operands
}
void set_denormals_flushed(bool on) {
  const unsigned now = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(on ? now | kFlush : now & ~kFlush);
}
bool denormals_flushed() { return (__builtin_ia32_stmxcsr() & kFlush) == kFlush; }
#elif defined(__aarch64__)
namespace {
constexpr std::uint64_t kFlush = std::uint64_t{1} << 24;  // FZ: results and operands
std::uint64_t control_register() {
  std::uint64_t value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
}  // namespace
void set_denormals_flushed(bool on) {
  const std::uint64_t now = control_register();
  asm volatile("msr fpcr, %0" : : "r"(on ? now | kFlush : now & ~kFlush));
}
bool denormals_flushed() { return (control_register() & kFlush) != 0; }
#else
void set_denormals_flushed(bool) {}
bool denormals_flushed() { return false; }
#endif

}  // namespace normlab
