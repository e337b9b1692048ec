// Lockstep's side of the comparison with torchvision (compare.py).
//
//   zoo_scores score NETWORK CLASSES SIDE WEIGHTS PICTURES OUT [NORM_EPS]
//     The scores of a network of the zoo: WEIGHTS as .pth or safetensors; PICTURES and OUT are
//     safetensors with the tensors "pictures" and "scores". SIDE: image_size, of a ViT; NORM_EPS:
//     norm_eps, of a MobileNet.
//   zoo_scores start NETWORK CLASSES SIDE SEED OUT
//     The weights that a seed gives, as safetensors.

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "lockstep/base/log.h"
#include "lockstep/error.h"
#include "lockstep/models/zoo/zoo.h"
#include "lockstep/weights.h"

namespace {

using namespace lockstep;
using Words = std::vector<std::string>;

const ZooNetwork& find_network(const std::string& name) {
  for (const ZooNetwork& network : zoo()) {
    if (network.name == name) return network;
  }
  throw Error(ErrorCode::kInvalidArgument, "no network " + name);
}

std::shared_ptr<Model> make_named(const Words& words) {
  const ZooNetwork& network = find_network(words[1]);
  ZooSettings settings = network.settings;
  if (settings.image_size) settings.image_size = std::stoll(words[3]);
  if (settings.norm_eps && words.size() > 7) settings.norm_eps = std::stod(words[7]);
  return make_network(network, settings, std::stoll(words[2]));
}

int score(const Words& words) {
  const at::NoGradGuard no_grad;
  const auto model = make_named(words);
  const WeightReport report = load_weights(words[4], *model);
  model->eval();
  const auto pictures = load_tensors(words[5]).tensors.at("pictures");
  save_tensors(words[6], {{"scores", model->forward(pictures)}});
  fmt::print("{} tensors from {}\n", report.loaded, report.format);
  return 0;
}

int start(const Words& words) {
  torch::manual_seed(std::stoull(words[4]));
  save_tensors(words[5], module_tensors(*make_named(words)));
  return 0;
}

int run(int argc, char** argv) {
  const Words words(argv + 1, argv + argc);
  if ((words.size() == 7 || words.size() == 8) && words[0] == "score") return score(words);
  if (words.size() == 6 && words[0] == "start") return start(words);
  throw Error(ErrorCode::kInvalidArgument, "see the first lines of zoo_scores.cpp");
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("zoo_scores", run, argc, argv);
}
