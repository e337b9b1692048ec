// Training from C++ without a file: some layers stay as they are, others have a rate of their own.
//
// A network learns the sine first. Then its inner layer is frozen, and its last one learns the
// cosine, ten times as fast as the first one.

#include <lockstep/error.h>
#include <lockstep/train.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdio>

namespace {

class Wave final : public lockstep::BatchMaker {
 public:
  explicit Wave(double phase) {
    xs_ = torch::linspace(-M_PI, M_PI, 256).unsqueeze(1);
    ys_ = torch::sin(xs_ + phase);
  }
  int64_t size() const override { return xs_.size(0); }
  lockstep::Batch make(const lockstep::BatchRows& rows) const override {
    const auto indices = lockstep::indices_of(rows);
    return {xs_.index_select(0, indices), {ys_.index_select(0, indices)}, rows.num_counted};
  }

 private:
  torch::Tensor xs_, ys_;  // (N, 1)
};

struct Net final : lockstep::Model {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(1, 32));
  torch::nn::Linear inner = register_module("inner", torch::nn::Linear(32, 32));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(32, 1));
  torch::Tensor forward(torch::Tensor input) override {
    return last(torch::tanh(inner(torch::tanh(first(input)))));
  }
};

lockstep::Recipe recipe_of(const std::string& name, double phase, const std::string& folder) {
  lockstep::Recipe recipe;
  recipe.name = name;
  recipe.network = [](int64_t) { return std::make_shared<Net>(); };
  recipe.data = [=](const lockstep::DatasetUse&) { return std::make_unique<const Wave>(phase); };
  recipe.loss = [](const lockstep::Tensors& outputs, const lockstep::Tensors& targets) {
    return torch::mse_loss(outputs[0], targets[0]);
  };
  recipe.settings = {"train.ckpt_save_dir=" + folder + "/" + name,
                     "train.loader.batch_size=32",
                     "scheduler.num_epochs=60",
                     "scheduler.warmup_epochs=0",
                     "scheduler.lr=0.01",
                     "train.ckpt_save_epochs=60",
                     "train.weights_format=safetensors",
                     "system.log_interval=1000"};
  return recipe;
}

std::unique_ptr<torch::optim::Optimizer> two_rates(torch::nn::Module& module) {
  std::vector<torch::Tensor> first, last;
  for (const auto& parameter : module.named_parameters()) {
    if (!parameter.value().requires_grad()) continue;
    (parameter.key().starts_with("last.") ? last : first).push_back(parameter.value());
  }
  using Options = torch::optim::AdamOptions;
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(first, std::make_unique<Options>(0.001));
  groups.emplace_back(last, std::make_unique<Options>(0.01));
  return std::make_unique<torch::optim::Adam>(groups, Options(0.01));
}

int run(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "out";
  const auto world = lockstep::World::join();
  if (const int status = lockstep::train(recipe_of("sine", 0, folder), world); status != 0) {
    return status;
  }
  auto recipe = recipe_of("cosine", M_PI / 2, folder);
  recipe.network = [](int64_t) {
    auto net = std::make_shared<Net>();
    for (auto& parameter : net->inner->parameters()) parameter.requires_grad_(false);
    return net;
  };
  recipe.optimizer = two_rates;
  recipe.settings.push_back("model.pretrained=" + folder + "/sine/latest/model.safetensors");
  recipe.events.on_epoch = [&](int64_t epoch, double loss) {
    if (epoch == 60) std::printf("rank %d: loss %.6f after %ld epochs\n", world.rank, loss, epoch);
  };
  return lockstep::train(recipe, world);
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("fine_tuning", run, argc, argv);
}
