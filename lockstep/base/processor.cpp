#include "lockstep/base/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lockstep::inline internal {

// __builtin_cpu_supports() would read CPUID a dozen times at every program's start. In a virtual
// machine each read is a trap, a tenth of a millisecond in all.
Processor this_processor() {
  Processor processor;
#if defined(__x86_64__)
  constexpr unsigned kSavesAvx = 0x06;
  constexpr unsigned kSavesAvx512 = 0xe6;
  constexpr unsigned kAvx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return {};
  unsigned saved = 0;
  asm volatile("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return {};
  processor.avx2 = (saved & kSavesAvx) == kSavesAvx && (b & bit_AVX2) != 0;
  processor.avx512 = (saved & kSavesAvx512) == kSavesAvx512 && (b & kAvx512) == kAvx512;
#endif
  return processor;
}

}  // namespace lockstep::inline internal
