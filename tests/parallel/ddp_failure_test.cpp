// A rank is killed during backward(), while averages of gradients are in progress: every other rank
// must name it within a second.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "lockstep/distributed_data_parallel.h"
#include "lockstep/error.h"
#include "tests/comm/support/allowance.h"
#include "tests/comm/support/forked.h"

namespace lockstep::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTurn = 3;                             // in which the victim is killed
constexpr auto kTimeout = std::chrono::seconds(60);  // no rank should wait for it

struct BackwardCase {
  HostLayout hosts;
  int victim;
  size_t parameter;  ///< Its gradient kills the victim; the last one comes first.
};

struct BackwardBoard {
  std::atomic<Clock::rep> fell;
  std::atomic<int> done;
};

torch::nn::Sequential make_net() {
  torch::nn::Sequential net;
  for (int layer = 0; layer < 4; ++layer) net->push_back(torch::nn::Linear(128, 128));
  return net;
}

/// From now on this process is killed when the gradient of `parameter` arrives.
void fall_at(const torch::Tensor& parameter, BackwardBoard& board) {
  parameter.register_hook([&board](const torch::Tensor&) {
    board.fell = Clock::now().time_since_epoch().count();
    ::kill(::getpid(), SIGKILL);
  });
}

void train_until_lost(const World& world, const BackwardCase& one, BackwardBoard& board) {
  torch::set_num_threads(1);
  auto net = make_net();
  // A bucket for each layer, so that some are in progress when the victim is killed.
  DistributedDataParallel model(net, ProcessGroup::create(world, {.timeout = kTimeout}),
                                DdpOptions{.bucket_cap_mb = 0.0625});
  for (int turn = 0;; ++turn) {
    if (world.rank == one.victim && turn == kTurn)
      fall_at(net->parameters().at(one.parameter), board);
    model.zero_grad();
    model(torch::ones({4, 128})).sum().backward();
  }
}

void survive_backward(const World& world, const BackwardCase& one, BackwardBoard& board) {
  try {
    train_until_lost(world, one, board);
  } catch (const Error& error) {
    const auto since = Clock::now().time_since_epoch().count() - board.fell;
    const double took = static_cast<double>(since) / 1e9;
    require(error.code() == ErrorCode::kPeerLost, error.what());
    require(has_name(error, fmt::format("rank {}", one.victim)), error.what());
    require(took < allowed(1), fmt::format("took {:.2f} s: {}", took, error.what()));
  }
}

void kill_in_backward(const BackwardCase& one) {
  const Shared<BackwardBoard> board;
  const auto ends = run_rank_processes(one.hosts, [&](const World& world) {
    survive_backward(world, one, *board);
    // A rank that ends is lost to the others, too.
    const auto limit = Clock::now() + kTimeout / 2;
    for (++board->done; board->done < world.size - 1 && Clock::now() < limit;) ::usleep(1000);
  });
  for (int rank = 0; rank < static_cast<int>(ends.size()); ++rank) {
    EXPECT_EQ(ends[static_cast<size_t>(rank)], rank == one.victim ? -SIGKILL : 0)
        << fmt::format("rank {} of {} host(s), rank {} fell at parameter {}", rank,
                       one.hosts.size(), one.victim, one.parameter);
  }
}

TEST(DdpFailure, ARankThatIsKilledAmidBackwardIsNamedAtOnce) {
  const size_t parameters = make_net()->parameters().size();
  std::vector<BackwardCase> cases;
  for (const HostLayout& hosts : {HostLayout{3}, HostLayout{2, 1}}) {
    for (const int victim : {0, 1, 2}) {
      for (const size_t parameter : {size_t{0}, parameters / 2, parameters - 1})
        cases.push_back({hosts, victim, parameter});
    }
  }
  run_forked(cases, 2, kill_in_backward);
}

}  // namespace
}  // namespace lockstep::testing
