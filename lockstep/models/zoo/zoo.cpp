#include "lockstep/models/zoo/zoo.h"

#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/models/backbone/resnet.h"
#include "lockstep/models/build/build_model.h"
#include "lockstep/models/heads.h"
#include "lockstep/models/zoo/families.h"

namespace lockstep::inline internal {
namespace {

ZooNetwork residual_of(const std::string& name, const std::string& millions, int depth,
                       const BottleneckWidth& width = {}) {
  return {name,
          millions + " million parameters with 1000 classes",
          {.zero_init_residual = false},
          [depth, width](const ZooSettings& chosen, int64_t classes) {
            const auto backbone = make_resnet(depth, Stem::kImageNet, width);
            auto model = compose(backbone, make_cls_head(backbone->out_channels(), classes));
            init_resnet(*model, *chosen.zero_init_residual);
            return model;
          }};
}

/// resnet18, 34, 50 and 101, resnext50_32x4d, wide_resnet50_2; see backbone/resnet.h.
std::vector<ZooNetwork> residual_networks() {
  return {residual_of("resnet18", "11.7", 18),
          residual_of("resnet34", "21.8", 34),
          residual_of("resnet50", "25.6", 50),
          residual_of("resnet101", "44.5", 101),
          residual_of("resnext50_32x4d", "25.0", 50, {.groups = 32, .per_group = 4}),
          residual_of("wide_resnet50_2", "68.9", 50, {.groups = 1, .per_group = 128})};
}

}  // namespace

const std::vector<ZooNetwork>& zoo() {
  static const auto networks = [] {
    std::vector<ZooNetwork> all;
    for (const auto family :
         {residual_networks, mobilenets_v3, efficientnets, convnexts, vision_transformers}) {
      for (auto& network : family()) all.push_back(std::move(network));
    }
    return all;
  }();
  return networks;
}

std::shared_ptr<Model> make_network(const ZooNetwork& network, const ZooSettings& settings,
                                    int64_t num_classes) {
  if (num_classes > 0) return network.make(settings, num_classes);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("model.head.num_classes is missing: {} needs the number of classes",
                          network.name));
}

}  // namespace lockstep::inline internal
