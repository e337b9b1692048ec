#pragma once
// `model:` of a configuration: which network, of which parts, and from which weights it starts.

#include <cstdint>
#include <string>

#include "lockstep/models/spec/model_spec.h"

namespace lockstep {

enum class ModelType : uint8_t { kCls, kDet, kRec };

struct BackboneConfig : BackboneSpec {
  /// Weights of this part: a file, or an address whose file lies in the cache (weights.h); empty:
  /// none. `True` is read as the address that MindOCR has for this name.
  std::string pretrained;
};

struct ModelConfig {
  ModelType type = ModelType::kCls;
  BackboneConfig backbone;
  NeckSpec neck;
  HeadSpec head;
  ModelSpec spec() const { return {backbone, neck, head}; }  ///< The network, whatever its weights.
  std::string pretrained;    ///< Weights of the whole model, as BackboneConfig::pretrained.
  bool resume = false;       ///< Go on from a checkpoint, if there is one.
  std::string resume_path;   ///< Which; empty: the latest in train.ckpt_save_dir.
  std::string given_name;    ///< model.name; empty: none.
  std::string name() const;  ///< That, else "{backbone}-{neck}-{head}", as MindOCR's banner has it.
};

}  // namespace lockstep
