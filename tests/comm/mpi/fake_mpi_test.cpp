// The back end "mpi" on a fake library: cases that are hard to cause with a real one.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <functional>

#include "lockstep/base/env.h"
#include "lockstep/process_group.h"
#include "tests/comm/mpi/fake_mpi.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

FakeMpi& load_fake() {
  const auto path = env("LOCKSTEP_BIN_DIR").value_or(".") + "/lockstep_fake_mpi.so";
  ::setenv("LOCKSTEP_MPI_LIBRARY", path.c_str(), 1);
  ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);  // as under mpirun
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  return *reinterpret_cast<FakeMpi* (*)()>(::dlsym(library, "lockstep_fake_mpi"))();
}

class FakeMpiTest : public ::testing::Test {
 protected:
  FakeMpiTest() {
    fake_.held = -1;
    fake_.deliver();
    fake_.starts = 0;
    fake_.abandoned_ms = -1;
    fake_.numbers_all_zero = false;
  }
  static FakeMpi& fake_;
};
FakeMpi& FakeMpiTest::fake_ = load_fake();

ProcessGroup make(const World& world, std::chrono::milliseconds timeout = 30s) {
  return ProcessGroup::create(world, {.backend = "mpi", .timeout = timeout});
}

std::string late(const std::function<void()>& call) {
  const Error error = error_of(call);
  EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
  return error.what();
}

/// `call` times out in the engine's call of this kind; then all but `data` is dropped.
template <class Call>
void expect_memory_stays(FakeMpi& fake, LockstepMpiKind kind, const Call& call) {
  std::array<double, 8> data{};
  fake.held = kind;
  const bool between_ranks = kind == kMpiSend || kind == kMpiRecv;
  run_rank_threads(between_ranks ? 2 : 1, [&](const World& world) {
    auto group = make(world, 1s);
    if (world.rank == 0) late([&] { call(group, data.data()); });
  });
  EXPECT_EQ(fake.pending(), 1);
  EXPECT_TRUE(fake.memory_is_there());
  fake.deliver();  // sanitizers report a write to freed memory
}

TEST_F(FakeMpiTest, WhatAnUnendedCallUsesStaysWhenTheGroupIsGone) {
  expect_memory_stays(fake_, kMpiAllReduce, [](auto& group, void*) { group.barrier(); });
  expect_memory_stays(fake_, kMpiAllToAllv, [](auto& group, double* data) {
    const int64_t counts[] = {2};
    group.all_to_allv(data, counts, data + 4, counts, DType::kFloat64).wait();
  });
  expect_memory_stays(fake_, kMpiSend, [](auto& group, double* data) {
    group.send(data, 3, DType::kFloat64, 1, 7).wait();
  });
  expect_memory_stays(fake_, kMpiRecv, [](auto& group, double* data) {
    group.recv(data, 3, DType::kFloat64, 1, 7).wait();
  });
}

TEST_F(FakeMpiTest, ALateMessageIsNamedWhateverCollectivesRunMeanwhile) {
  fake_.held = kMpiRecv;
  run_rank_threads(2, [](const World& world) {
    auto group = make(world, 1s);
    if (world.rank != 0) return;
    float data[4] = {};
    Work message = group.recv(data, 4, DType::kFloat32, 1, 7);
    while (!message.done()) {
      try {
        group.barrier();
      } catch (const Error&) {  // of the message, from now on
        break;
      }
    }
    const auto text = late([&] { message.wait(); });
    EXPECT_EQ(text.find("recv of 4 float32, tag 7, from rank 1 on rank 0: did not end in time"), 0)
        << text;
  });
}

TEST_F(FakeMpiTest, AfterAnErrorTheProcessDoesNotWaitForOthersLongerThanTheGroup) {
  run_rank_threads(1, [](const World& world) {
    auto group = make(world, 1s);
    float one = 1;
    error_of([&] { group.broadcast(&one, int64_t{1} << 40, DType::kFloat32, 0).wait(); });
    EXPECT_EQ(fake_.abandoned_ms, -1);  // nothing was sent
    fake_.held = kMpiAllReduce;
    late([&] { group.barrier(); });
    EXPECT_EQ(fake_.abandoned_ms, 1000);
  });
}

TEST_F(FakeMpiTest, RanksThatAnotherLibrarysLauncherStartedAreRefused) {
  fake_.numbers_all_zero = true;
  run_rank_threads(2, [](const World& world) {
    const Error error = error_of([&] { make(world); });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_NE(std::string(error.what()).find("one launcher of a fake must start all ranks"),
              std::string::npos)
        << error.what();
  });
}

TEST_F(FakeMpiTest, ARankThatDoesNotComeIsNamed) {
  run_rank_threads(3, [](const World& world) {
    auto group = make(world, 1s);
    if (world.rank != 1) return;
    const auto text = late([&] { group.subgroup({1, 2}); });
    EXPECT_EQ(text,
              "creating the process group: rank 2 did not come; all members of a sub-group name "
              "the same ranks in the same order, here 1, 2");
  });
}

TEST_F(FakeMpiTest, CountsOfMoreThanAnIntAreRefusedBeforeAnythingStarts) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  run_rank_threads(1, [](const World& world) {
    auto group = make(world);
    int8_t one = 0;  // the fake reads no memory
    const auto is_refused = [&](const std::function<Work()>& call) {
      fake_.starts = 0;
      try {
        call().wait();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
        EXPECT_EQ(fake_.starts, 0) << error.what();
        return true;
      }
      return false;
    };
    const auto sum = [&](int64_t count, DType dtype) {
      return is_refused([&] { return group.all_reduce(&one, count, dtype, ReduceOp::kSum); });
    };
    EXPECT_FALSE(sum(kMost, DType::kInt8));
    EXPECT_TRUE(sum(kMost + 1, DType::kInt8));
    EXPECT_FALSE(sum(kMost / 2, DType::kComplex64));
    EXPECT_TRUE(sum(kMost / 2 + 1, DType::kComplex64));
    const auto uneven = [&](int64_t count) {
      return is_refused([&] {
        return group.all_to_allv(&one, std::span(&count, 1), &one, std::span(&count, 1),
                                 DType::kInt8);
      });
    };
    EXPECT_FALSE(uneven(kMost));
    EXPECT_TRUE(uneven(kMost + 1));
    EXPECT_TRUE(is_refused([&] {
      const int64_t count = kMost + 1;
      return group.all_gatherv(&one, &one, std::span(&count, 1), DType::kInt8);
    }));
  });
  run_rank_threads(2, [](const World& world) {
    auto group = make(world);
    int8_t one = 0;
    const auto scatter = [&](int64_t count) {
      group.reduce_scatter(&one, &one, count, DType::kInt8, ReduceOp::kSum).wait();
    };
    scatter(kMost / 2);
    EXPECT_EQ(error_of([&] { scatter(kMost / 2 + 1); }).code(), ErrorCode::kInvalidArgument);
  });
}

}  // namespace
}  // namespace lockstep::testing
