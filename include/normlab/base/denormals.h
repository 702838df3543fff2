// Subnormal numbers: whether the calling thread counts them as 0.
#pragma once

namespace normlab {

// Operands and results; x86: DAZ and FTZ of MXCSR, ARM: FZ of FPCR. Elsewhere without effect.
void set_denormals_flushed(bool on);
bool denormals_flushed();

// While it lives, the calling thread computes with subnormal numbers whatever it was set to.
class WithSubnormals {
 public:
  WithSubnormals() : flushed_(denormals_flushed()) { set_denormals_flushed(false); }
  ~WithSubnormals() { set_denormals_flushed(flushed_); }
  WithSubnormals(const WithSubnormals&) = delete;
  WithSubnormals& operator=(const WithSubnormals&) = delete;

 private:
  bool flushed_;
};

}  // namespace normlab
