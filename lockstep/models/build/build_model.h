#pragma once
// Builds models by name from a backbone, a neck and a head, as MindOCR's configurations do.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/models/model.h"
#include "lockstep/models/spec/model_spec.h"

namespace lockstep::inline internal {

/// resnet18 .. resnet152, and each again as cls_resnet18 .. (MindOCR's prefix for the task);
/// det_resnet18, 34, 50, 101, 152, det_mobilenet_v3, det_mobilenet_v3_enhance;
/// rec_resnet34, rec_vgg7.
const std::vector<std::string>& backbone_names();
/// DBFPN, RSEFPN, RNNEncoder.
const std::vector<std::string>& neck_names();
/// ClsHead, DBHead, DBHeadEnhance (DBHead with the paper's step function), CTCHead.
const std::vector<std::string>& head_names();

/// A network with fresh weights, drawn from libtorch's default CPU generator: one seed, one
/// network. The parts go together as: (cls_)resnet*, no neck, ClsHead; det_*, DBFPN or RSEFPN,
/// DBHead or DBHeadEnhance; rec_*, RNNEncoder, CTCHead.
///
/// Shapes of forward, from (N, 3, H, W) float:
///   ClsHead  (N, K) logits.
///   DBHead   in training (N, 3, H, W): binary, thresh, thresh_binary (or (N, 1, H, W) without
///            `adaptive`); else (N, 1, H, W): binary. H and W rounded up to multiples of 4.
///   CTCHead  H = 32; in training (T, N, K) logits, else (N, T, K) probabilities; T is ceil(W / 4)
///            of rec_resnet34, W / 4 - 1 of rec_vgg7.
///
/// Names. With ClsHead the modules of backbone and head have no prefix. Parameters then have
/// torchvision's names (conv1.weight, layer1.0.bn1.weight, fc.weight) and order, so weights can be
/// exchanged as they are. Otherwise names start with "backbone.", "neck." and "head.", and continue
/// with MindOCR's names of cells. Their last parts are PyTorch's: weight, bias, running_mean and
/// running_var for gamma, beta, moving_mean and moving_variance. One module differs: det_resnet*'s
/// `downsample`, as in torchvision, is MindOCR's `down_sample`.
/// Errors: kInvalidArgument for an unknown name, with the nearest known one, and for parts that do
/// not fit together; those of the parts.
std::shared_ptr<Model> build_model(const ModelSpec& spec);

/// The same for text with a backbone that exists; of spec.backbone the name alone is used. DBFPN or
/// RSEFPN with DBHead or DBHeadEnhance take four maps, the first with a quarter of the image's rows
/// and columns. RNNEncoder with CTCHead takes the last map.
/// Errors: kInvalidArgument for parts that do not fit together. forward() throws it for maps of
/// other channels than feature_channels() has, and for a first map of another size.
std::shared_ptr<Model> build_text_model(const std::shared_ptr<Backbone>& backbone,
                                        const ModelSpec& spec);

/// A backbone alone, with fresh weights. After one seed those of det_* and rec_* are the ones that
/// build_model() makes. Those of (cls_)resnet* have maps of four stages, as det_resnet* has, and
/// the initial values of a classifier. Errors: kInvalidArgument for an unknown name; those of the
/// part.
std::shared_ptr<Backbone> build_backbone(const BackboneSpec& spec);

/// Backbone, then head. The modules of both have no prefix, so their names must differ.
std::shared_ptr<Model> compose(std::shared_ptr<Model> backbone, std::shared_ptr<Model> head);

/// Elements of all parameters. With `buffers` also those of batch norm's statistics.
int64_t count_parameters(const torch::nn::Module& model, bool buffers = false);

}  // namespace lockstep::inline internal
