// Lockstep's side of the comparison with MindSpore and MindOCR: batches of a configuration's data
// as files, then loss, gradients and a few training steps on these files.
//
//   bench_mindspore batches CONFIG COUNT DIR [key.sub=value ...]
//     DIR/batch_0.safetensors ...: image, target_0, ...
//   bench_mindspore train CONFIG WEIGHTS DIR STEPS LR OUT [key.sub=value ...]
//     Starts at WEIGHTS. Writes OUT/gradients.safetensors (of the first batch, under MindSpore's
//     names) and OUT/trained.ckpt; prints "loss STEP VALUE" and "ms VALUE", the median of a step.
//     Under a launcher each rank uses every n-th batch; rank 0 writes.
//   bench_mindspore train64 ...
//     The same in float64: which of two float32 gradients is nearer to the truth?
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
#include <numeric>
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
#include "lockstep/weights.h"
#include "lockstep/world.h"

namespace {

using namespace lockstep;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

fs::path batch_path(const fs::path& dir, int64_t index) {
  return dir / fmt::format("batch_{}.safetensors", index);
}

Config read_config(const Words& words, size_t first_override) {
  const auto rest = std::span(words).subspan(first_override);
  return load_config(words[1], rest);
}

int write_batches(const Words& words) {
  const auto config = read_config(words, 4);
  const int64_t count = std::stoll(words[2]);
  const fs::path dir = words[3];
  fs::create_directories(dir);
  const auto data = make_data(config, {}, /*training=*/true, 1);
  std::vector<int64_t> order(static_cast<size_t>(count * config.train.loader.batch_size));
  const int64_t size = data.samplers.front().dataset_size();
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i) % size;
  data.loader->start(0, order);
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

int train(const Words& words, bool in_float64) {
  auto config = read_config(words, 7);
  config.model = without_pretrained(config.model);
  const fs::path batches = words[3], out = words[6];
  const int64_t steps = std::stoll(words[4]);
  fs::create_directories(out);
  const auto model = make_model(config.model, config.system.seed);
  load_weights(words[2], *model);
  if (in_float64) model->to(at::kDouble);
  const auto task = make_task(config);
  torch::optim::SGD optimizer(model->parameters(),
                              torch::optim::SGDOptions(std::stod(words[5])).momentum(0.9));
  model->train();
  const auto world = World::join();
  auto group = ProcessGroup::create(world);
  DistributedDataParallel ddp(model, group);
  std::vector<double> times;
  int64_t files = 0;
  while (fs::exists(batch_path(batches, files))) ++files;
  for (int64_t step = 0; step < steps; ++step) {
    const auto batch =
        read_batch(batch_path(batches, (step * world.size + world.rank) % files), in_float64);
    const auto begin = std::chrono::steady_clock::now();
    optimizer.zero_grad();
    const auto loss = task->loss({ddp(batch.at("image"))}, targets_of(batch));
    loss.backward();
    if (step == 0 && world.rank == 0) write_gradients(*model, out / "gradients.safetensors");
    optimizer.step();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - begin;
    times.push_back(elapsed.count());
    fmt::print("loss {} {:.9g}\n", step, loss.item<double>());
  }
  if (world.rank == 0) save_ckpt(out / "trained.ckpt", *model);
  std::sort(times.begin(), times.end());
  if (!times.empty()) fmt::print("ms {:.1f}\n", times[times.size() / 2]);
  return 0;
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
  if (words.size() == 1 && words[0] == "ranks") return print_ranks();
  throw Error(
      ErrorCode::kInvalidArgument,
      "usage: bench_mindspore ranks, batches CONFIG COUNT DIR [key=value ...] or train CONFIG "
      "WEIGHTS DIR STEPS LR OUT [key=value ...]");
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("bench_mindspore", body, argc, argv);
}
