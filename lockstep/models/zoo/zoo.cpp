#include "lockstep/models/zoo/zoo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/models/zoo/families.h"

namespace lockstep {

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

const ZooNetwork& zoo_network(const std::string& name) {
  std::vector<std::string> names;
  for (const ZooNetwork& network : zoo()) {
    if (network.name == name) return network;
    names.push_back(network.name);
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("no network '{}'{} (there are: {})", name, did_you_mean(name, names),
                          fmt::join(names, ", ")));
}

std::shared_ptr<Model> make_network(const ZooNetwork& network, const ZooSettings& settings,
                                    int64_t num_classes) {
  if (num_classes > 0) return network.make(settings, num_classes);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("model.head.num_classes is missing: {} needs the number of classes",
                          network.name));
}

}  // namespace lockstep
