#include "lockstep/models/build_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/models/head/cls_head.h"

namespace lockstep {
namespace {

/// Backbone, then head. Registers their children, not the two parts: see build_model() on names.
/// The parts hold no parameters of their own, so train(), to() and the like reach everything.
class Composed final : public Model {
 public:
  Composed(std::shared_ptr<Model> backbone, std::shared_ptr<Model> head)
      : backbone_(std::move(backbone)), head_(std::move(head)) {
    for (const auto& part : {backbone_, head_}) {
      for (const auto& child : part->named_children()) register_module(child.key(), child.value());
    }
  }

  at::Tensor forward(at::Tensor input) override {
    return head_->forward(backbone_->forward(std::move(input)));
  }

 private:
  std::shared_ptr<Model> backbone_;
  std::shared_ptr<Model> head_;
};

void require_known(const std::string& what, const std::string& name,
                   const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("unknown {} '{}'{} Known: {}.", what, name,
                          nearest_name(name, known).empty() ? "." : did_you_mean(name, known),
                          fmt::join(known, ", ")));
}

int resnet_depth(std::string_view backbone) {
  return std::stoi(std::string(backbone.substr(backbone.find("resnet") + 6)));
}

}  // namespace

const std::vector<std::string>& backbone_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const char* prefix : {"", "cls_"}) {
      for (const int depth : resnet_depths())
        all.push_back(fmt::format("{}resnet{}", prefix, depth));
    }
    return all;
  }();
  return names;
}

const std::vector<std::string>& head_names() {
  static const std::vector<std::string> names = {"ClsHead"};
  return names;
}

std::shared_ptr<Model> build_model(const ModelSpec& spec) {
  require_known("backbone", spec.backbone, backbone_names());
  require_known("head", spec.head, head_names());
  auto backbone = make_resnet(resnet_depth(spec.backbone), spec.stem);
  auto head = make_cls_head(backbone->out_channels(), spec.num_classes);
  auto model = std::make_shared<Composed>(backbone, head);
  init_resnet(*model, spec.zero_init_residual);
  return model;
}

int64_t count_parameters(const torch::nn::Module& model, bool buffers) {
  int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  if (!buffers) return count;
  for (const auto& buffer : model.named_buffers()) {
    // MindSpore has no counter of batches, so MindOCR's total leaves it out.
    if (!buffer.key().ends_with("num_batches_tracked")) count += buffer.value().numel();
  }
  return count;
}

}  // namespace lockstep
