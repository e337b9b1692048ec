// Lockstep's side of the comparison with MindSpore and MindOCR: batches of a configuration's data
// as files, then loss, gradients and training steps on these files, and the speed of both parts.
//
//   bench_mindspore batches CONFIG COUNT DIR [key.sub=value ...]
//     DIR/batch_0.safetensors ...: image, target_0, ...
//   bench_mindspore train CONFIG WEIGHTS DIR STEPS LR OUT [key.sub=value ...]
//     Starts at WEIGHTS. Writes OUT/gradients.safetensors (of the first batch, under MindSpore's
//     names) and OUT/trained.ckpt; prints "loss STEP VALUE" and "ms VALUE", the median of a step.
//     Under a launcher each rank uses every n-th batch; rank 0 writes.
//   bench_mindspore train64 ...
//     The same in float64: which of two float32 gradients is nearer to the truth?
//   bench_mindspore step CONFIG WEIGHTS DIR [key.sub=value ...]
//   bench_mindspore pipeline CONFIG [key.sub=value ...]
//     For each number N in a line of the standard input, "images/s VALUE": of N training steps on
//     DIR's first batch, or of N batches that the data pipeline makes after a first one.
//   bench_mindspore ranks
//     The answers of this rank to the calls of ranks.py, "RANK|CALL|RESULT".
// The optimizer is momentum 0.9 without decay, as in MindSpore's tutorial; the network is in
// training mode.

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/checkpoint/mindspore_file.h"
#include "lockstep/checkpoint/weight_names.h"
#include "lockstep/collectives.h"
#include "lockstep/distributed_data_parallel.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/task/task.h"
#include "lockstep/train/task_parts.h"
#include "lockstep/weights.h"
#include "lockstep/world.h"

namespace {

using namespace lockstep;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

fs::path batch_path(const fs::path& dir, int64_t index) {
  return dir / fmt::format("batch_{}.safetensors", index);
}

Config read_config(const Words& words, size_t first_override) {
  const auto rest = std::span(words).subspan(first_override);
  return load_config(words[1], rest);
}

/// Starts the first `count` batches of the data in their order, over and over if they are fewer.
void start_batches(const DataParts& data, const Config& config, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count * config.train.loader.batch_size));
  const int64_t size = data.samplers.front().dataset_size();
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i) % size;
  data.loader->start(0, {std::move(order)});
}

int write_batches(const Words& words) {
  const auto config = read_config(words, 4);
  const int64_t count = std::stoll(words[2]);
  const fs::path dir = words[3];
  fs::create_directories(dir);
  const auto data = make_data(config, {}, /*training=*/true, 1, at::kCPU);
  start_batches(data, config, count);
  for (int64_t i = 0; i < count; ++i) {
    const auto batch = data.loader->next();
    TensorMap tensors = {{"image", batch->images}};
    for (size_t k = 0; k < batch->targets.size(); ++k) {
      tensors[fmt::format("target_{}", k)] = batch->targets[k];
    }
    save_tensors(batch_path(dir, i), tensors);
  }
  return 0;
}

TensorMap read_batch(const fs::path& path, bool in_float64) {
  auto tensors = load_tensors(path).tensors;
  for (auto& [name, value] : tensors) {
    if (in_float64 && value.is_floating_point()) value = value.to(at::kDouble);
  }
  return tensors;
}

std::vector<at::Tensor> targets_of(const TensorMap& tensors) {
  std::vector<at::Tensor> targets;
  while (true) {
    const auto found = tensors.find(fmt::format("target_{}", targets.size()));
    if (found == tensors.end()) return targets;
    targets.push_back(found->second);
  }
}

void write_gradients(const Model& model, const fs::path& path) {
  Words own;
  std::vector<at::Tensor> gradients;
  for (const auto& item : model.named_parameters()) {
    own.push_back(item.key());
    gradients.push_back(item.value().grad());
  }
  // Names of norms are recognised by their running statistics.
  Words all = own;
  for (const auto& item : model.named_buffers()) all.push_back(item.key());
  const auto names = mindspore_names(all);
  TensorMap tensors;
  for (size_t i = 0; i < own.size(); ++i) tensors[names[i]] = gradients[i];
  save_tensors(path, tensors);
}

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// The network of `config` with `weights`, in training mode.
std::shared_ptr<Model> start_model(const Config& config, const fs::path& weights, bool in_float64) {
  auto model = make_model(without_pretrained(config.model), config.system.seed);
  load_weights(weights, *model);
  if (in_float64) model->to(at::kDouble);
  model->train();
  return model;
}

struct Training {
  Training(const Config& config, const fs::path& weights, double lr, bool in_float64)
      : model(start_model(config, weights, in_float64)),
        task(make_task(config)),
        optimizer(model->parameters(), torch::optim::SGDOptions(lr).momentum(0.9)),
        ddp(model, ProcessGroup::create(world)) {}

  at::Tensor backward(const TensorMap& batch) {
    optimizer.zero_grad();
    auto loss = task->loss({ddp(batch.at("image"))}, targets_of(batch));
    loss.backward();
    return loss;
  }

  World world = World::join();
  std::shared_ptr<Model> model;
  std::unique_ptr<Task> task;
  torch::optim::SGD optimizer;
  DistributedDataParallel<std::shared_ptr<Model>> ddp;
};

int train(const Words& words, bool in_float64) {
  const fs::path batches = words[3], out = words[6];
  const int64_t steps = std::stoll(words[4]);
  fs::create_directories(out);
  Training training(read_config(words, 7), words[2], std::stod(words[5]), in_float64);
  const World& world = training.world;
  std::vector<double> times;
  int64_t files = 0;
  while (fs::exists(batch_path(batches, files))) ++files;
  for (int64_t step = 0; step < steps; ++step) {
    const auto batch =
        read_batch(batch_path(batches, (step * world.size + world.rank) % files), in_float64);
    const auto begin = Clock::now();
    const auto loss = training.backward(batch);
    if (step == 0 && world.rank == 0) {
      write_gradients(*training.model, out / "gradients.safetensors");
    }
    training.optimizer.step();
    times.push_back(milliseconds_since(begin));
    fmt::print("loss {} {:.9g}\n", step, loss.item<double>());
    std::fflush(stdout);  // people watch the log
  }
  if (world.rank == 0) save_ckpt(out / "trained.ckpt", *training.model);
  std::sort(times.begin(), times.end());
  if (!times.empty()) fmt::print("ms {:.1f}\n", times[times.size() / 2]);
  return 0;
}

double images_per_second(int64_t images, Clock::time_point begin) {
  return static_cast<double>(images) * 1000 / milliseconds_since(begin);
}

/// Answers each number of the standard input, so that two programs can be measured in turns.
int answer(const std::function<double(int64_t count)>& speed) {
  for (int64_t count = 0; std::cin >> count;) {
    fmt::print("images/s {:.6g}\n", speed(count));
    std::fflush(stdout);
  }
  return 0;
}

int time_steps(const Words& words) {
  // The same batch again and again: a small rate keeps the numbers ordinary ones.
  Training training(read_config(words, 4), words[2], /*lr=*/1e-5, /*in_float64=*/false);
  const auto batch = read_batch(batch_path(words[3], 0), /*in_float64=*/false);
  return answer([&](int64_t count) {
    const auto begin = Clock::now();
    for (int64_t i = 0; i < count; ++i) {
      training.backward(batch);
      training.optimizer.step();
    }
    return images_per_second(count * batch.at("image").size(0), begin);
  });
}

int time_pipeline(const Words& words) {
  const auto config = read_config(words, 2);
  const auto data = make_data(config, {}, /*training=*/true, /*max_workers=*/64, at::kCPU);
  return answer([&](int64_t count) {
    start_batches(data, config, count + 1);
    auto batch = data.loader->next();  // without the start of the threads
    const auto begin = Clock::now();
    int64_t images = 0;
    while ((batch = data.loader->next())) images += batch->images.size(0);
    return images_per_second(images, begin);
  });
}

std::string text_of(const at::Tensor& values) {
  std::vector<float> numbers(values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
  return fmt::format("[{:.1f}]", fmt::join(numbers, ", "));
}

int print_ranks() {
  const auto world = World::join();
  auto all = ProcessGroup::create(world);
  const auto say = [&](const std::string& call, const std::string& result) {
    fmt::print("{}|{}|{}\n", world.rank, call, result);
  };
  say("world.rank", std::to_string(world.rank));
  say("world.size", std::to_string(world.size));
  say("all.local_rank()", std::to_string(all.local_rank()));
  say("all.local_size()", std::to_string(all.local_size()));
  say("all.world_rank(1)", std::to_string(all.world_rank(1)));
  say("all.group_rank(1)", std::to_string(all.group_rank(1)));
  auto pair = all.subgroup({0, 1});
  say("pair = all.subgroup({0, 1})", "a group");
  say("pair.size()", std::to_string(pair.size()));
  say("pair.rank()", std::to_string(pair.rank()));
  say("pair.world_rank(1)", std::to_string(pair.world_rank(1)));
  pair.destroy();
  say("pair.destroy()", "done");
  const auto one = static_cast<float>(world.rank + 1);
  const auto own = at::tensor({one, 10 * one});
  auto sum = own.clone(), copy = own.clone();
  all_reduce(all, sum, ReduceOp::kSum).wait();
  say("all_reduce(all, [r+1, 10(r+1)])", text_of(sum));
  auto gathered = at::zeros({2 * own.numel()});
  all_gather(all, own, gathered).wait();
  say("all_gather(all, [r+1, 10(r+1)])", text_of(gathered));
  broadcast(all, copy, 0).wait();
  say("broadcast(all, [r+1, 10(r+1)], 0)", text_of(copy));
  return 0;
}

int body(int argc, char** argv) {
  const Words words(argv + 1, argv + argc);
  if (words.size() >= 4 && words[0] == "batches") return write_batches(words);
  if (words.size() >= 7 && words[0] == "train") return train(words, /*in_float64=*/false);
  if (words.size() >= 7 && words[0] == "train64") return train(words, /*in_float64=*/true);
  if (words.size() >= 4 && words[0] == "step") return time_steps(words);
  if (words.size() >= 2 && words[0] == "pipeline") return time_pipeline(words);
  if (words.size() == 1 && words[0] == "ranks") return print_ranks();
  throw Error(
      ErrorCode::kInvalidArgument,
      "usage: bench_mindspore ranks, batches CONFIG COUNT DIR [key=value ...], train CONFIG "
      "WEIGHTS DIR STEPS LR OUT [key=value ...], step CONFIG WEIGHTS DIR [key=value ...] or "
      "pipeline CONFIG [key=value ...]");
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("bench_mindspore", body, argc, argv);
}
