// One rank of an MPI job: mpirun -n N mpi_ranks CASE. Ends with 0 if the case passed.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <map>

#include "lockstep/base/env.h"
#include "lockstep/error.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/world/host_id.h"
#include "tests/comm/support/conformance.h"

namespace lockstep::testing {
namespace {

/// A variable of Open MPI's launcher, or of MPICH's.
int launchers_word(const char* open_mpi, const char* mpich) {
  const auto value = env(open_mpi);
  return static_cast<int>(parse_int(value ? *value : env(mpich).value(), 0, 1000, open_mpi));
}

/// The world numbers its ranks in the reverse order of MPI, which must not matter.
World join() {
  World world;
  world.size = launchers_word("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
  world.rank = world.size - 1 - launchers_word("OMPI_COMM_WORLD_RANK", "PMI_RANK");
  world.local_rank = world.rank;
  world.local_size = world.size;
  world.launcher = "test";
  world.host_id = this_host_id();
  const auto port =
      static_cast<int>(parse_int(env("LOCKSTEP_TEST_PORT").value(), 1, 65535, "port"));
  world.store =
      connect_tcp_store({"127.0.0.1", port}, "", Deadline::after(std::chrono::seconds(30)));
  return world;
}

ProcessGroup make(const World& world, std::chrono::milliseconds timeout) {
  return ProcessGroup::create(world, {.backend = "mpi", .timeout = timeout});
}

void suite(const World& world) {
  auto group = make(world, std::chrono::seconds(60));
  require(group.backend() == "mpi", "the back end's name");
  check_everything(group);
}

/// `call` must fail with `code` and `parts` in its text, and so must all later calls.
template <class Call>
void must_fail(ProcessGroup& group, ErrorCode code, std::initializer_list<const char*> parts,
               const Call& call) {
  std::string first;
  try {
    call();
  } catch (const Error& error) {
    first = error.what();
    require(error.code() == code, first);
    for (const char* part : parts) require(first.find(part) != std::string::npos, first);
  }
  require(!first.empty(), "nobody noticed");
  try {
    group.barrier();
  } catch (const Error& again) {
    require(again.what() == first, "another error afterwards");
    return;
  }
  throw std::runtime_error("the group still works");
}

void mismatch(const World& world) {
  float data[16] = {};
  auto group = make(world, std::chrono::seconds(20));
  must_fail(group, ErrorCode::kMismatch, {"rank 1 called all_reduce #1", "max)", "sum)"}, [&] {
    const auto op = world.rank == 1 ? ReduceOp::kMax : ReduceOp::kSum;
    group.all_reduce(data, 10, DType::kFloat32, op).wait();
  });
  auto uneven = make(world, std::chrono::seconds(20));
  must_fail(uneven, ErrorCode::kMismatch, {"all_gatherv #1", "rank 1 sends 5 elements"}, [&] {
    const int64_t counts[] = {3, world.rank == 1 ? 5 : 4, 2};
    uneven.all_gatherv(data, data + 5, counts, DType::kFloat32).wait();
  });
}

void late(const World& world) {
  auto other = make(world, std::chrono::seconds(20));  // first: it starts MPI
  auto group = make(world, std::chrono::milliseconds(1500));
  if (world.rank != 2) {
    must_fail(group, ErrorCode::kTimeout, {"rank 2"}, [&] { group.barrier(); });
  }
  other.barrier();
}

/// One rank never comes, not even to MPI_Finalize. The others must end nonetheless.
void stopped(const World& world) {
  make(world, std::chrono::seconds(20)).barrier();  // starts MPI
  auto group = make(world, std::chrono::milliseconds(1500));
  while (world.rank == 2) ::pause();
  must_fail(group, ErrorCode::kTimeout, {"rank 2"}, [&] { group.barrier(); });
  world.store->set(fmt::format("survived/{}", world.rank), "",
                   Deadline::after(std::chrono::seconds(5)));
}

/// One rank dies, and the launcher leaves the others alive.
void killed(const World& world) {
  make(world, std::chrono::seconds(20)).barrier();  // starts MPI
  auto group = make(world, std::chrono::milliseconds(1500));
  if (world.rank == 2) ::raise(SIGKILL);
  must_fail(group, ErrorCode::kTimeout, {"waiting for rank 2"}, [&] { group.barrier(); });
  world.store->set(fmt::format("survived/{}", world.rank), "",
                   Deadline::after(std::chrono::seconds(5)));
}

int body(int, char** argv) {
  const std::map<std::string, void (*)(const World&)> cases = {{"suite", suite},
                                                               {"mismatch", mismatch},
                                                               {"late", late},
                                                               {"stopped", stopped},
                                                               {"killed", killed}};
  promises.fixed_order = false;
  promises.shared_memory = false;
  cases.at(argv[1])(join());
  return 0;
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  return lockstep::run_main("mpi_ranks", lockstep::testing::body, argc, argv);
}
