#pragma once
// Parts of one's own for `lockstep train`, under the names that a YAML file gives.
//
//   const lockstep::NetworkPart kTwoConvs(
//       "two_convs", "two convolutions and a linear layer", [](lockstep::Section& settings) {
//         int64_t width = 16;
//         settings.read("width", width, {1, 4096}, "channels of the first convolution");
//         return [=](int64_t classes) { return std::make_shared<TwoConvs>(width, classes); };
//       });
//
// A part registers where it is defined, before main(): in a program that calls train_main(), or in
// a shared library that `lockstep train --plugin` loads. Each is a function that reads the part's
// settings and returns what makes it; the file may then say `network: {name: two_convs, width: 8}`.
// `lockstep train --list` shows all of them with their settings.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/section.h"

namespace at {
class Tensor;
}

namespace lockstep {

class BatchMaker;
class Metric;
class Model;

/// `model.network`: a whole network. Every rank calls it with the same state of libtorch's
/// generator, so that all make the same weights. num_classes: model.head.num_classes, or 0.
using NetworkMaker = std::function<std::shared_ptr<Model>(int64_t num_classes)>;

/// `loss.name`: a scalar, the mean over the batch, with its graph. outputs: the network's, often
/// one. targets: those of the batch. An evaluation with ClsMetric computes it, too.
using LossFunction = std::function<at::Tensor(const std::vector<at::Tensor>& outputs,
                                              const std::vector<at::Tensor>& targets)>;

/// `metric.name`. num_classes: as NetworkMaker's.
using MetricMaker = std::function<std::unique_ptr<Metric>(int64_t num_classes)>;

/// The use of a data set. seed: system.seed, for random transforms.
struct DatasetUse {
  bool training = true;  ///< For the section `train`, not for `eval`.
  uint64_t seed = 0;
};
/// `train.dataset.type` and `eval.dataset.type`. Every rank makes the whole data set, and the
/// trainer deals the samples to the ranks.
using DatasetMaker = std::function<std::unique_ptr<const BatchMaker>(const DatasetUse& use)>;

/// Rises when these types change. A shared library keeps that of its headers.
constexpr int kPartVersion = 1;

/// A part by name. `read` must read every key that the part knows, whatever their values.
template <typename Made>
struct NamedPart {
  std::string name;
  std::string about;  ///< One line, for --list.
  std::function<Made(Section& settings)> read;
  int version = kPartVersion;
};

/// The registered parts of one kind.
template <typename Made>
class Registry {
 public:
  /// Call it before main(), or while one thread runs. A name that is given twice is an error once
  /// a configuration has it.
  void add(NamedPart<Made> part) { parts_.push_back(std::move(part)); }
  /// As add(), in the place of earlier ones of that name.
  void put(NamedPart<Made> part) {
    std::erase_if(parts_, [&](const auto& earlier) { return earlier.name == part.name; });
    parts_.push_back(std::move(part));
  }
  const std::vector<NamedPart<Made>>& parts() const { return parts_; }

 private:
  std::vector<NamedPart<Made>> parts_;
};

Registry<NetworkMaker>& networks();
Registry<LossFunction>& losses();
Registry<MetricMaker>& metrics();
Registry<DatasetMaker>& datasets();

/// An object that registers a part, as in the example above.
template <typename Made, Registry<Made>& (*kRegistry)()>
struct RegisteredPart {
  RegisteredPart(std::string name, std::string about, std::function<Made(Section&)> read) {
    kRegistry().add({std::move(name), std::move(about), std::move(read), kPartVersion});
  }
};
using NetworkPart = RegisteredPart<NetworkMaker, networks>;
using LossPart = RegisteredPart<LossFunction, losses>;
using MetricPart = RegisteredPart<MetricMaker, metrics>;
using DatasetPart = RegisteredPart<DatasetMaker, datasets>;

}  // namespace lockstep
