#pragma once

#include <memory>

#include "lockstep/models/model.h"

namespace lockstep {

/// Adaptive scale fusion: each of four maps is weighed, place by place, before they are
/// concatenated. The weights come from the maps themselves: a 3x3 convolution of all to
/// `channels` / 4, channel attention (if asked for) and spatial attention added to it, then one
/// sigmoid a map.
/// forward: four (N, channels / 4, H, W) -> (N, channels, H, W).
/// Names: conv, chan_att.{0,2}, spat_att.{0,2}, scale_att.0; only conv has a bias.
/// Source: Liao et al., "Real-Time Scene Text Detection with Differentiable Binarization and
/// Adaptive Scale Fusion", TPAMI 2022; as in MindOCR, attentions are added, not multiplied.
std::shared_ptr<Neck> make_scale_fusion(int64_t channels, bool channel_attention);

}  // namespace lockstep
