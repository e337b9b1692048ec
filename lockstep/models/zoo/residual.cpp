#include "lockstep/models/zoo/families.h"

#include "lockstep/models/backbone/resnet.h"
#include "lockstep/models/build_model.h"
#include "lockstep/models/heads.h"

namespace lockstep {
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

}  // namespace

std::vector<ZooNetwork> residual_networks() {
  return {residual_of("resnet18", "11.7", 18),
          residual_of("resnet34", "21.8", 34),
          residual_of("resnet50", "25.6", 50),
          residual_of("resnet101", "44.5", 101),
          residual_of("resnext50_32x4d", "25.0", 50, {.groups = 32, .per_group = 4}),
          residual_of("wide_resnet50_2", "68.9", 50, {.groups = 1, .per_group = 128})};
}

}  // namespace lockstep
