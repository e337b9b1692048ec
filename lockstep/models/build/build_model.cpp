#include "lockstep/models/build/build_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/rounding.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/models/backbone/det_mobilenet_v3.h"
#include "lockstep/models/backbone/det_mobilenet_v3_enhance.h"
#include "lockstep/models/backbone/rec_backbones.h"
#include "lockstep/models/backbone/resnet.h"
#include "lockstep/models/heads.h"
#include "lockstep/models/necks.h"

namespace lockstep::inline internal {
namespace {

/// Backbone, then head. Registers their children, not the two parts: see compose().
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

enum class ModelTask { kClassification, kDetection, kRecognition };

/// Refuses feature maps that a backbone of a program's own may give. libtorch's errors name neither
/// the backbone nor what the next part needs.
void check_maps(const std::vector<at::Tensor>& maps, const std::vector<int64_t>& channels,
                const at::Tensor& image, ModelTask task) {
  std::vector<int64_t> own;
  for (const auto& map : maps) own.push_back(map.dim() == 4 ? map.size(1) : 0);
  if (own != channels) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("model.backbone: features() gave maps of [{}] channels, "
                            "feature_channels() are [{}]",
                            fmt::join(own, ", "), fmt::join(channels, ", ")));
  }
  if (task != ModelTask::kDetection) return;
  const int64_t rows = divide_up(image.size(2), 4), columns = divide_up(image.size(3), 4);
  const auto& first = maps.front();
  if (first.size(2) == rows && first.size(3) == columns) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("model.backbone: the first map of an image of {} x {} must be a quarter, "
                  "{} x {}, not {} x {}",
                  image.size(2), image.size(3), rows, columns, first.size(2), first.size(3)));
}

/// Backbone, neck and head of text detection or recognition.
class OcrModel final : public Model {
 public:
  OcrModel(const std::shared_ptr<Backbone>& backbone, const std::shared_ptr<Neck>& neck,
           const std::shared_ptr<Model>& head, ModelTask task)
      : backbone_(register_module("backbone", backbone)),
        neck_(register_module("neck", neck)),
        head_(register_module("head", head)),
        channels_(backbone->feature_channels()),
        task_(task) {}

  at::Tensor forward(at::Tensor input) override {
    auto maps = backbone_->features(input);
    check_maps(maps, channels_, input, task_);
    return head_->forward(neck_->forward(std::move(maps)));
  }

 private:
  std::shared_ptr<Backbone> backbone_;
  std::shared_ptr<Neck> neck_;
  std::shared_ptr<Model> head_;
  std::vector<int64_t> channels_;
  ModelTask task_;
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

ModelTask task_of(const std::string& backbone) {
  if (backbone.starts_with("det_")) return ModelTask::kDetection;
  if (backbone.starts_with("rec_")) return ModelTask::kRecognition;
  return ModelTask::kClassification;
}

/// Checks that neck and head match the backbone's task.
void check_parts(const ModelSpec& spec, ModelTask task) {
  const bool db = spec.head.name == "DBHead" || spec.head.name == "DBHeadEnhance";
  const bool rse = task == ModelTask::kDetection && spec.neck.name == "RSEFPN";
  const char* neck = task == ModelTask::kDetection     ? "DBFPN"
                     : task == ModelTask::kRecognition ? "RNNEncoder"
                                                       : "";
  const char* head = task == ModelTask::kDetection     ? "DBHead"
                     : task == ModelTask::kRecognition ? "CTCHead"
                                                       : "ClsHead";
  const bool head_fits = task == ModelTask::kDetection ? db : spec.head.name == head;
  if ((spec.neck.name == neck || rse) && head_fits) return;
  const auto named = [](const std::string& part) { return part.empty() ? "none" : part; };
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("backbone {} goes with neck {} and head {}, not with neck {} and head {}",
                  spec.backbone.name, named(neck), head, named(spec.neck.name), spec.head.name));
}

/// Without its initial values: see init_classifier().
std::shared_ptr<Backbone> build_class_backbone(const BackboneSpec& spec) {
  if (spec.stem == Stem::kMindSpore && spec.zero_init_residual) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "zero_init_residual goes with the other stems: with mindspore norms start at random");
  }
  return make_resnet(resnet_depth(spec.name), spec.stem);
}

/// `net`: a whole classifier, or its backbone alone.
void init_classifier(torch::nn::Module& net, const BackboneSpec& spec) {
  if (spec.stem == Stem::kMindSpore) return init_as_mindspore(net);
  init_resnet(net, spec.zero_init_residual);
}

std::shared_ptr<Model> build_classifier(const ModelSpec& spec) {
  auto backbone = build_class_backbone(spec.backbone);
  auto head = make_cls_head(backbone->out_channels(), spec.head.num_classes);
  auto model = compose(backbone, head);
  init_classifier(*model, spec.backbone);
  return model;
}

std::shared_ptr<Backbone> build_det_backbone(const BackboneSpec& spec) {
  if (spec.name == "det_mobilenet_v3") return make_det_mobilenet_v3(spec);
  if (spec.name == "det_mobilenet_v3_enhance") return make_det_mobilenet_v3_enhance(spec);
  return make_det_resnet(resnet_depth(spec.name), spec.dcn);
}

std::shared_ptr<Model> build_detector(const std::shared_ptr<Backbone>& backbone,
                                      const ModelSpec& spec) {
  const auto make_neck = spec.neck.name == "RSEFPN" ? make_rse_fpn : make_db_fpn;
  const auto neck = make_neck(backbone->feature_channels(), spec.neck);
  const auto step =
      spec.head.name == "DBHeadEnhance" ? StepFunction::kPaper : StepFunction::kMindocr;
  return std::make_shared<OcrModel>(
      backbone, neck, make_db_head(neck->out_channels(), spec.head, step), ModelTask::kDetection);
}

std::shared_ptr<Backbone> build_rec_backbone(const BackboneSpec& spec) {
  return spec.name == "rec_vgg7" ? make_rec_vgg7() : make_rec_resnet34();
}

std::shared_ptr<Model> build_recognizer(const std::shared_ptr<Backbone>& backbone,
                                        const ModelSpec& spec) {
  auto neck = make_rnn_encoder(backbone->out_channels(), spec.neck.hidden_size);
  return std::make_shared<OcrModel>(backbone, neck, make_ctc_head(neck->out_channels(), spec.head),
                                    ModelTask::kRecognition);
}

}  // namespace

const std::vector<std::string>& backbone_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const char* prefix : {"", "cls_", "det_"}) {
      for (const int depth : resnet_depths())
        all.push_back(fmt::format("{}resnet{}", prefix, depth));
    }
    for (const char* name :
         {"det_mobilenet_v3", "det_mobilenet_v3_enhance", "rec_resnet34", "rec_vgg7"}) {
      all.push_back(name);
    }
    return all;
  }();
  return names;
}

const std::vector<std::string>& neck_names() {
  static const std::vector<std::string> names = {"DBFPN", "RSEFPN", "RNNEncoder"};
  return names;
}

const std::vector<std::string>& head_names() {
  static const std::vector<std::string> names = {"ClsHead", "DBHead", "DBHeadEnhance", "CTCHead"};
  return names;
}

std::shared_ptr<Model> compose(std::shared_ptr<Model> backbone, std::shared_ptr<Model> head) {
  return std::make_shared<Composed>(std::move(backbone), std::move(head));
}

std::shared_ptr<Model> build_model(const ModelSpec& spec) {
  require_known("backbone", spec.backbone.name, backbone_names());
  if (!spec.neck.name.empty()) require_known("neck", spec.neck.name, neck_names());
  require_known("head", spec.head.name, head_names());
  const auto task = task_of(spec.backbone.name);
  check_parts(spec, task);
  switch (task) {
    case ModelTask::kDetection:
      return build_detector(build_det_backbone(spec.backbone), spec);
    case ModelTask::kRecognition:
      return build_recognizer(build_rec_backbone(spec.backbone), spec);
    case ModelTask::kClassification:
      return build_classifier(spec);
  }
  throw Error(ErrorCode::kInternal, "a task without a model");
}

std::shared_ptr<Model> build_text_model(const std::shared_ptr<Backbone>& backbone,
                                        const ModelSpec& spec) {
  const bool reads = spec.head.name == "CTCHead";
  check_parts(spec, reads ? ModelTask::kRecognition : ModelTask::kDetection);
  return reads ? build_recognizer(backbone, spec) : build_detector(backbone, spec);
}

std::shared_ptr<Backbone> build_backbone(const BackboneSpec& spec) {
  require_known("backbone", spec.name, backbone_names());
  const auto task = task_of(spec.name);
  if (task == ModelTask::kDetection) return build_det_backbone(spec);
  if (task == ModelTask::kRecognition) return build_rec_backbone(spec);
  auto backbone = build_class_backbone(spec);
  init_classifier(*backbone, spec);
  return backbone;
}

int64_t count_parameters(const torch::nn::Module& model, bool buffers) {
  int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  if (!buffers) return count;
  for (const auto& buffer : model.named_buffers()) {
    // MindSpore has no counter of batches, so MindOCR's total excludes it.
    if (!buffer.key().ends_with("num_batches_tracked")) count += buffer.value().numel();
  }
  return count;
}

}  // namespace lockstep::inline internal
