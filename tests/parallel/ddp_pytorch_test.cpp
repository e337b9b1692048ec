// The same steps as PyTorch's own DistributedDataParallel over Gloo; see ddp_reference.py.
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/optim/sgd.h>

#include <cstdlib>
#include <filesystem>

#include "lockstep/base/file.h"
#include "lockstep/distributed_data_parallel.h"
#include "tests/parallel/tasks.h"
#include "tests/support/ranks.h"
#include "tests/support/temp_folder.h"
#include "tests/support/torch_script.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using namespace testing;  // tasks.h and ranks.h
using torch::Tensor;

/// Writes a file that both sides read as float32, one tensor after the other.
void write_floats(const std::string& path, const std::vector<Tensor>& tensors) {
  std::string bytes;
  for (const Tensor& tensor : tensors) {
    const Tensor flat = tensor.detach().to(torch::kFloat).contiguous();
    bytes.append(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
  }
  write_file_atomically(path, bytes);
}

Tensor read_floats(const std::string& path) {
  const std::string bytes = read_file(path);
  return torch::from_blob(const_cast<char*>(bytes.data()), {static_cast<int64_t>(bytes.size() / 4)},
                          torch::kFloat)
      .clone();
}

nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, bool bias) {
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(bias));
}

/// relu(branch(x) + shortcut(x)); the shortcut is a layer where the shape changes.
struct Residual : nn::Module {
  nn::Sequential branch, shortcut;
  Residual(int64_t in, int64_t out, int64_t stride)
      : branch(conv(in, out, 3, stride, false), nn::BatchNorm2d(out), nn::ReLU(),
               conv(out, out, 3, 1, false), nn::BatchNorm2d(out)) {
    register_module("branch", branch);
    if (in != out) {
      shortcut->push_back(conv(in, out, 1, stride, false));
      shortcut->push_back(nn::BatchNorm2d(out));
    }
    register_module("shortcut", shortcut);
  }
  Tensor forward(const Tensor& x) {
    const Tensor straight = shortcut->is_empty() ? x : shortcut->forward(x);
    return (branch->forward(x) + straight).relu();
  }
};

/// The nets of ddp_reference.py, by their names there.
Task task_named(const std::string& name) {
  const auto wrap = [](const nn::Sequential& net) { return std::make_shared<Wrapped>(net); };
  if (name == "mlp") {
    return {[wrap] {
              return wrap(nn::Sequential(nn::Linear(600, 512), nn::ReLU(), nn::Linear(512, 300),
                                         nn::Tanh(), nn::Linear(300, 10)));
            },
            {600}};
  }
  if (name == "residual") {
    return {[wrap] {
              return wrap(nn::Sequential(conv(3, 8, 3, 1, false), nn::BatchNorm2d(8), nn::ReLU(),
                                         Residual(8, 8, 1), Residual(8, 16, 2), Residual(16, 32, 2),
                                         nn::Flatten(), nn::Linear(128, 10)));
            },
            {3, 8, 8}};
  }
  return {[wrap] {
            return wrap(nn::Sequential(conv(3, 8, 3, 1, true), nn::BatchNorm2d(8), nn::ReLU(),
                                       nn::Flatten(), nn::Linear(512, 600), nn::Tanh(),
                                       nn::Linear(600, 10)));
          },
          {3, 8, 8}};
}

/// Parameters, then running means and variances, flat. The same step as in ddp_reference.py.
Tensor three_steps(const Task& task, const std::string& folder) {
  Tensor state;
  run_rank_threads(2, [&](World world) {
    at::set_num_threads(1);
    auto net = make_seeded(task, static_cast<uint64_t>(world.rank), torch::kFloat);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    if (world.rank == 0) write_floats(folder + "/initial", model.parameters());
    torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    for (int step = 0; step < 3; ++step) {
      const Tensor x = inputs(task, 6, 2 * step + world.rank, torch::kFloat);
      write_floats(folder + "/input" + std::to_string(2 * step + world.rank), {x});
      optimizer.zero_grad();
      loss_of(model.forward(x), labels(6)).backward();
      optimizer.step();
    }
    if (world.rank != 0) return;
    std::vector<Tensor> flat;
    for (const auto& parameter : net->parameters()) flat.push_back(parameter.detach().flatten());
    for (const auto& buffer : net->named_buffers()) {
      if (buffer.value().dim() > 0) flat.push_back(buffer.value().flatten());
    }
    state = torch::cat(flat);
  });
  return state;
}

TEST(DdpAndPyTorch, ThreeStepsAreTheSame) {
  const TempFolder folder;
  const std::vector<std::string> names = {"convolution", "mlp", "residual"};
  std::vector<Tensor> ours;
  std::string command = torch_script("tests/parallel/ddp_reference.py ") + folder.path().string();
  for (const auto& name : names) {
    std::filesystem::create_directory(folder / name);
    ours.push_back(three_steps(task_named(name), folder / name));
    command += " " + name;
  }
  const std::string log = folder / "log";
  ASSERT_EQ(std::system((command + " >" + log + " 2>&1").c_str()), 0) << read_file(log);
  for (size_t i = 0; i < names.size(); ++i) {
    const Tensor theirs = read_floats(folder / (names[i] + "/final"));
    ASSERT_EQ(ours[i].sizes(), theirs.sizes()) << names[i];
    const Tensor initial = read_floats(folder / (names[i] + "/initial"));
    EXPECT_GT((initial - ours[i].slice(0, 0, initial.numel())).abs().max().item<float>(), 1e-2);
    const auto worst = (ours[i] - theirs).abs().max().item<float>();
    std::printf("%s: worst difference %.2e\n", names[i].c_str(), worst);
    EXPECT_LE(worst, 1e-5) << names[i];
  }
}

}  // namespace
}  // namespace lockstep
