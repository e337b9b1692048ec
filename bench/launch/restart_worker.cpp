// Two ranks train a small net. In the first attempt rank 1 kills itself after some steps, in the
// second all end after one step. It prints the times: bench/launch/restart.sh takes the difference.

#include <fmt/format.h>
#include <signal.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "lockstep/base/quick_end.h"
#include "lockstep/error.h"
#include "lockstep/lockstep.h"

namespace {

constexpr int kStepsBeforeDeath = 5;

void say(const char* what) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto line = fmt::format("{} {}\n", what,
                                std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  [[maybe_unused]] const ssize_t put = ::write(STDOUT_FILENO, line.data(), line.size());
}

void train_step(const torch::Tensor& x, const torch::Tensor& y,
                lockstep::DistributedDataParallel<torch::nn::Sequential>& model,
                torch::optim::Optimizer& optimizer) {
  optimizer.zero_grad();
  torch::nn::functional::cross_entropy(model.forward(x), y).backward();
  optimizer.step();
}

int body(int, char**) {
  auto world = lockstep::World::join();
  torch::set_num_threads(world.threads);
  auto group = lockstep::ProcessGroup::create(world);
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(784, 256), torch::nn::ReLU(),
                            torch::nn::Linear(256, 10));
  auto model = lockstep::DistributedDataParallel(net, group);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  const auto x = torch::rand({32, 784});
  const auto y = torch::randint(10, {32}, torch::kLong);
  for (int step = 1; world.restart_count > 0 || step <= kStepsBeforeDeath; ++step) {
    train_step(x, y, model, optimizer);
    if (world.restart_count > 0) break;
  }
  if (world.restart_count > 0) {
    if (world.rank == 0) say("stepped");
    return 0;
  }
  if (world.rank == 1) {
    say("killed");
    ::raise(SIGKILL);
  }
  while (true) train_step(x, y, model, optimizer);  // until the other's death ends it
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::start_fork_server();
  lockstep::end_without_teardown();
  return lockstep::run_main("restart_worker", body, argc, argv);
}
