#pragma once
// `model:` of a configuration: which network, of which parts, and from which weights it starts.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

enum class ModelType : uint8_t { kCls, kDet, kRec };

/// Keys that a part's name does not have keep their defaults; to write them is an error.
struct BackboneConfig {
  std::string name = "resnet50";
  /// Weights of this part: a file, or an address whose file lies in the cache (weights.h); empty:
  /// none. `True` is read as the address that MindOCR has for this name.
  std::string pretrained;
  // resnet*
  std::string stem = "imagenet";    ///< Ours: "imagenet" or "cifar".
  bool zero_init_residual = false;  ///< Ours.
  // det_resnet*
  bool dcn = false;  ///< Ours: deformable 3x3 convolutions in C3 to C5.
  // det_mobilenet_v3
  std::string architecture = "large";  ///< Or "small".
  double alpha = 1;                    ///< Of all widths.
  std::vector<int64_t> out_stages;     ///< Whose outputs go on to the neck.
  bool squeeze_v2 = false;             ///< bottleneck_params.se_version: SqueezeExciteV2.
  bool always_expand = false;          ///< bottleneck_params.always_expand.
  // det_mobilenet_v3_enhance: architecture and alpha too
  bool disable_se = false;  ///< Without squeeze and excitation.
};

struct NeckConfig {
  std::string name;  ///< Empty: none.
  // DBFPN
  int64_t out_channels = 256;
  bool bias = false;
  bool use_asf = false;           ///< Adaptive scale fusion: DBNet++.
  bool channel_attention = true;  ///< Of it.
  // RSEFPN: out_channels too
  bool shortcut = true;  ///< Attention is added to what it weighs.
  // RNNEncoder
  int64_t hidden_size = 512;
};

struct HeadConfig {
  std::string name = "ClsHead";
  // ClsHead
  int64_t num_classes = 0;
  // DBHead, and DBHeadEnhance, which takes the difference to the threshold times k, as the paper.
  int64_t k = 50;
  bool adaptive = true;  ///< Thresholds are learnt too.
  bool bias = false;
  // CTCHead
  int64_t out_channels = 0;  ///< Classes, blank included.
  std::optional<int64_t> mid_channels;
  double dropout = 0;                  ///< Between the two layers that mid_channels makes.
  std::string weight_init = "normal";  ///< Or "crnn_customised".
  std::string bias_init = "zeros";     ///< Or "crnn_customised".
};

struct ModelConfig {
  ModelType type = ModelType::kCls;
  BackboneConfig backbone;
  NeckConfig neck;
  HeadConfig head;
  std::string pretrained;    ///< Weights of the whole model, as BackboneConfig::pretrained.
  bool resume = false;       ///< Go on from a checkpoint, if there is one.
  std::string resume_path;   ///< Which; empty: the latest in train.ckpt_save_dir.
  std::string given_name;    ///< model.name; empty: none.
  std::string name() const;  ///< That, else "{backbone}-{neck}-{head}", as MindOCR's banner has it.
};

}  // namespace lockstep
