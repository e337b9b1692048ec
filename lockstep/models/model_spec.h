#pragma once
// What a configuration's `model:` section says: fields are called as its keys.

#include <optional>
#include <string>
#include <vector>

#include "lockstep/models/backbone/resnet.h"

namespace lockstep {

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

  bool shortcut = true;  ///< RSEFPN: attention is added to what it weighs.

  int64_t hidden_size = 512;  ///< RNNEncoder: of each direction.
};

struct HeadSpec {
  std::string name = "ClsHead";  ///< One of head_names().

  int64_t num_classes = 1000;  ///< ClsHead.

  double k = 50;         ///< DBHead: steepness of the approximate step.
  bool adaptive = true;  ///< DBHead: has a branch for thresholds.
  bool bias = false;     ///< DBHead: of its first convolutions.

  int64_t out_channels = 0;                  ///< CTCHead: classes, the blank among them.
  std::optional<int64_t> mid_channels = {};  ///< CTCHead: two layers, with so many in between.
  double dropout = 0;                        ///< CTCHead with mid_channels.
  std::string weight_init = "normal";        ///< CTCHead: or "crnn_customised".
  std::string bias_init = "zeros";           ///< CTCHead: or "crnn_customised".
};

struct ModelSpec {
  BackboneSpec backbone = {};
  NeckSpec neck = {};
  HeadSpec head = {};
};

}  // namespace lockstep
