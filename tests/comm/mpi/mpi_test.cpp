// The back end "mpi" under mpirun: the suite of all back ends, and what it says when ranks
// disagree.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/process_group.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

int under_mpirun(int ranks, const std::string& name) {
  const TcpStoreServer store({"127.0.0.1", 0, ""});
  ::setenv("LOCKSTEP_TEST_PORT", std::to_string(store.port()).c_str(), 1);
  const auto command = fmt::format(
      "timeout 120 mpirun --allow-run-as-root --oversubscribe -n {} {}/mpi_ranks {} 2>&1", ranks,
      env("LOCKSTEP_BIN_DIR").value_or("."), name);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Mpi, DoesWhatEveryBackEndDoes) {
  EXPECT_EQ(under_mpirun(3, "suite"), 0);
}
TEST(Mpi, ADisagreementNamesBothSides) {
  EXPECT_EQ(under_mpirun(3, "mismatch"), 0);
}
TEST(Mpi, ALateRankIsNamed) {
  EXPECT_EQ(under_mpirun(3, "late"), 0);
}
TEST(Mpi, WhatMpiCannotCountIsRefused) {
  EXPECT_EQ(under_mpirun(2, "limits"), 0);
}

TEST(Mpi, NamedWithoutALauncherItDoesNotFallBack) {
  World world;
  world.host_id = this_host_id();
  const Error error = error_of([&] { ProcessGroup::create(world, {.backend = "mpi"}); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_NE(std::string(error.what()).find("no MPI launcher"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace lockstep
