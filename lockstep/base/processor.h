#pragma once
// This machine's processor.

namespace lockstep::inline internal {

struct Processor {
  bool avx2 = false;
  bool avx512 = false;  ///< F, DQ, BW and VL.
};

/// Vector instructions that the processor has and whose registers the system saves; none but on
/// x86-64. Cost: some 20 us in a virtual machine. Source: Intel, Software Developer's Manual,
/// volume 1, 14.3 and 15.2 (state that the system saves, XCR0).
Processor this_processor();

/// For a loop that looks for another thread's change: saves power, and the core's other thread runs
/// faster. Takes up to some 50 ns.
inline void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace lockstep::inline internal
