// The back end "mpi" with MPICH, beside another MPI as the system's default. MPICH's ranks never
// yield while they wait, so cases with much data use no more of them than cores.

#include <gtest/gtest.h>

#include "tests/comm/mpi/under_launcher.h"

namespace lockstep {
namespace {

TEST(Mpich, DoesWhatEveryBackEndDoes) {
  EXPECT_EQ(under_launcher(2, "suite"), 0);
}
TEST(Mpich, ADisagreementNamesBothSides) {
  EXPECT_EQ(under_launcher(3, "mismatch"), 0);
}

}  // namespace
}  // namespace lockstep
