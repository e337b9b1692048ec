#pragma once
// The parts of a network. Fields have the names of the keys of a configuration's section `model`.
// Fields that a part does not use keep their defaults.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::inline internal {

/// The layers before the first stage. kImageNet: 7x7 convolution of stride 2 and 3x3 max-pool of
/// stride 2 (input 224x224, output of the backbone H/32 x W/32). kCifar: one 3x3 convolution of
/// stride 1 (input 32x32, output H/8 x W/8). kMindCv: as kImageNet, but the max-pool pads as
/// same_padding(), which weights of MindCV's ResNets need. kMindSpore: the ResNet-50 of MindSpore's
/// tutorial on distributed training. Its stem is as kMindCv, the 7x7 convolution pads likewise, and
/// more than the stem differs: see resnet.h.
enum class Stem { kImageNet, kCifar, kMindCv, kMindSpore };

struct BackboneSpec {
  std::string name = "resnet50";  ///< One of backbone_names().

  Stem stem = Stem::kImageNet;      ///< resnet*, cls_resnet*.
  bool zero_init_residual = false;  ///< resnet*, cls_resnet*; see init_resnet().

  bool dcn = false;  ///< det_resnet*: deformable convolutions in the last three stages.

  std::string architecture = "large";  ///< det_mobilenet_v3: "large" or "small".
  double alpha = 1;                    ///< det_mobilenet_v3: factor of its widths.
  std::vector<int64_t> out_stages =
      {};                      ///< det_mobilenet_v3: places in `features`; empty: the last.
  bool squeeze_v2 = false;     ///< det_mobilenet_v3: se_version SqueezeExciteV2.
  bool always_expand = false;  ///< det_mobilenet_v3.

  bool disable_se = false;  ///< det_mobilenet_v3_enhance: without squeeze and excitation.
};

struct NeckSpec {
  std::string name = {};  ///< One of neck_names(), or empty: none.

  int64_t out_channels = 256;     ///< DBFPN, RSEFPN.
  bool bias = false;              ///< DBFPN.
  bool use_asf = false;           ///< DBFPN: adaptive scale fusion (DBNet++).
  bool channel_attention = true;  ///< DBFPN with use_asf.

  bool shortcut = true;  ///< RSEFPN: attention is added to its input.

  int64_t hidden_size = 512;  ///< RNNEncoder: of each direction.
};

struct HeadSpec {
  std::string name = "ClsHead";  ///< One of head_names().

  int64_t num_classes = 1000;  ///< ClsHead.

  int64_t k = 50;        ///< DBHead: steepness of the approximate step.
  bool adaptive = true;  ///< DBHead: has a branch for thresholds.
  bool bias = false;     ///< DBHead: of its first convolutions.

  int64_t out_channels = 0;                  ///< CTCHead: classes, including the blank.
  std::optional<int64_t> mid_channels = {};  ///< CTCHead: width between two layers.
  double dropout = 0;                        ///< CTCHead with mid_channels.
  std::string weight_init = "normal";        ///< CTCHead: or "crnn_customised".
  std::string bias_init = "zeros";           ///< CTCHead: or "crnn_customised".
};

struct ModelSpec {
  BackboneSpec backbone = {};
  NeckSpec neck = {};
  HeadSpec head = {};
};

}  // namespace lockstep::inline internal
