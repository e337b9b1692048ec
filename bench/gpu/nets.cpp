#include "bench/gpu/nets.h"

#include <ATen/ops/relu.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "apps/lockstep-bench-ddp/transformer.h"
#include "lockstep/error.h"

namespace lockstep::bench {
namespace {

using namespace torch::nn;

Conv2d conv(int64_t inputs, int64_t outputs, int64_t size, int64_t stride = 1) {
  return Conv2d(Conv2dOptions(inputs, outputs, size).stride(stride).padding(size / 2).bias(false));
}

struct Bottleneck final : Net {
  Bottleneck(int64_t inputs, int64_t width, int64_t stride) {
    const int64_t outputs = 4 * width;
    main =
        register_module("main", Sequential(conv(inputs, width, 1), BatchNorm2d(width), ReLU(),
                                           conv(width, width, 3, stride), BatchNorm2d(width),
                                           ReLU(), conv(width, outputs, 1), BatchNorm2d(outputs)));
    if (stride == 1 && inputs == outputs) return;
    shortcut = register_module("shortcut",
                               Sequential(conv(inputs, outputs, 1, stride), BatchNorm2d(outputs)));
  }
  at::Tensor forward(at::Tensor input) override {
    return at::relu(main->forward(input) + (shortcut ? shortcut->forward(input) : input));
  }
  Sequential main{nullptr}, shortcut{nullptr};
};

struct ResNet50 final : Net {
  ResNet50() : head(register_module("head", Linear(2048, 10))) {
    stem = register_module("stem", Sequential(conv(3, 64, 3), BatchNorm2d(64), ReLU()));
    int64_t inputs = 64;
    const int64_t widths[] = {64, 128, 256, 512}, counts[] = {3, 4, 6, 3};
    for (int stage = 0; stage < 4; ++stage) {
      for (int64_t block = 0; block < counts[stage]; ++block) {
        const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
        blocks.push_back(
            register_module("block" + std::to_string(blocks.size()),
                            std::make_shared<Bottleneck>(inputs, widths[stage], stride)));
        inputs = 4 * widths[stage];
      }
    }
  }
  at::Tensor forward(at::Tensor input) override {
    input = stem->forward(input);
    for (const auto& block : blocks) input = block->forward(input);
    return head->forward(input.mean({2, 3}));
  }
  Sequential stem{nullptr};
  std::vector<std::shared_ptr<Bottleneck>> blocks;
  Linear head;
};

}  // namespace

GpuModel make_gpu_model(const std::string& name) {
  if (name == "resnet50") return {std::make_shared<ResNet50>(), {256, 3, 32, 32}};
  if (name == "transformer25m") {
    return {std::make_shared<Transformer<Net>>(12, 416, 8), {64, 32, 416}};
  }
  throw Error(ErrorCode::kInvalidArgument,
              "unknown model '" + name + "'; known: resnet50, transformer25m");
}

}  // namespace lockstep::bench
