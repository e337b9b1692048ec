#include "lockstep/train/zoo_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/models/zoo/zoo.h"
#include "lockstep/registry.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kLargestImage = 4096;

void read_image_size(Section& section, int64_t& size) {
  section.read("image_size", size, {16, kLargestImage},
               "sides of the pictures, a multiple of 16; it fixes the number of weights");
  if (size % 16 != 0) {
    section.fail("image_size", fmt::format("must be a multiple of 16, not {}", size));
  }
}

ZooSettings read_settings(Section& section, ZooSettings settings) {
  if (settings.dropout) {
    section.read("dropout", *settings.dropout, {0, 0.999}, "share of values that training drops");
  }
  if (settings.attention_dropout) {
    section.read("attention_dropout", *settings.attention_dropout, {0, 0.999},
                 "the same for the weights of the attention");
  }
  if (settings.stochastic_depth) {
    section.read("stochastic_depth", *settings.stochastic_depth, {0, 0.999},
                 "share of pictures that skip the last block in training; earlier blocks fewer");
  }
  if (settings.image_size) read_image_size(section, *settings.image_size);
  if (settings.zero_init_residual) {
    section.read("zero_init_residual", *settings.zero_init_residual,
                 "each block starts as the identity");
  }
  if (settings.norm_eps) {
    section.read("norm_eps", *settings.norm_eps, {1e-12, 1},
                 "added to the variance in batch norms; 0.00001 for weights of timm");
  }
  return settings;
}

}  // namespace

void register_zoo() {
  static bool registered = false;
  if (std::exchange(registered, true)) return;
  for (const ZooNetwork& network : zoo()) {
    const auto& put = networks().put_names();
    if (std::find(put.begin(), put.end(), network.name) != put.end()) continue;
    networks().add({network.name, network.about, [&network](Section& section) -> NetworkMaker {
                      const ZooSettings settings = read_settings(section, network.settings);
                      return [&network, settings](int64_t classes) {
                        return make_network(network, settings, classes);
                      };
                    }});
  }
}

}  // namespace lockstep::inline internal
