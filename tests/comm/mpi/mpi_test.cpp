// The back end "mpi" under its library's launcher: the suite of all back ends, and its errors when
// ranks disagree.

#include <gtest/gtest.h>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/world/host_id.h"
#include "tests/comm/mpi/under_launcher.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

TEST(Mpi, DoesWhatEveryBackEndDoes) {
  EXPECT_EQ(under_launcher(3, "suite"), 0);
}
TEST(Mpi, ADisagreementNamesBothSides) {
  EXPECT_EQ(under_launcher(3, "mismatch"), 0);
}
TEST(Mpi, ALateRankIsNamed) {
  EXPECT_EQ(under_launcher(3, "late"), 0);
}
/// Runs `name` with three ranks; ranks 0 and 1 report that they survived the end of rank 2.
void expect_two_survive(const std::string& name) {
  const TcpStoreServer store({"127.0.0.1", 0, ""});
  constexpr int kStillRunning = 124;  // exit code of timeout(1)
  EXPECT_NE(under_launcher(3, name, store), kStillRunning);
  const std::string keys[] = {"survived/0", "survived/1"};
  const auto client = connect_tcp_store({"127.0.0.1", store.port()}, "", Deadline::after(5s));
  EXPECT_TRUE(client->check(keys, Deadline::after(5s)));
}

/// The launcher ends the stopped rank after the others have ended.
TEST(Mpi, ARankThatIsStoppedKeepsTheOthersNoLongerThanTheirTimeout) {
  expect_two_survive("stopped");
}
/// Open MPI's launcher ends all ranks when one dies, unless it is told to let them recover.
TEST(Mpi, ARankThatIsKilledIsNamedWhereTheLauncherLetsTheOthersLive) {
  ::setenv("OMPI_MCA_orte_enable_recovery", "1", 1);
  expect_two_survive("killed");
  ::unsetenv("OMPI_MCA_orte_enable_recovery");
}

TEST(Mpi, NamedWithoutALauncherItDoesNotFallBack) {
  World world;
  world.host_id = this_host_id();
  const Error error = error_of([&] { ProcessGroup::create(world, {.backend = "mpi"}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("no MPI launcher"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace lockstep
