#pragma once
// The instruction sets of this machine's processor.

namespace lockstep::inline internal {

struct Processor {
  bool avx2 = false;
  bool avx512 = false;  ///< F, DQ, BW and VL.
};

/// Vector instructions that the processor has and whose registers the system saves; none but on
/// x86-64. Cost: some 20 us in a virtual machine. Source: Intel, Software Developer's Manual,
/// volume 1, 14.3 and 15.2 (state that the system saves, XCR0).
Processor this_processor();

}  // namespace lockstep::inline internal
