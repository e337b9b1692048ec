#pragma once
// The networks of MindOCR's recipes.

#include "lockstep/models/build/build_model.h"
#include "tests/support/error_of.h"

namespace lockstep::inline internal {

inline ModelSpec dbnet(const std::string& backbone, bool asf = false) {
  ModelSpec spec;
  spec.backbone.name = backbone;
  spec.neck.name = "DBFPN";
  spec.neck.use_asf = asf;
  spec.head.name = "DBHead";
  return spec;
}

/// db_mobilenetv3_icdar15.
inline ModelSpec dbnet_mobilenet() {
  ModelSpec spec = dbnet("det_mobilenet_v3");
  spec.backbone.alpha = 0.5;
  spec.backbone.out_stages = {5, 8, 14, 20};
  spec.backbone.squeeze_v2 = true;
  spec.backbone.always_expand = true;
  return spec;
}

inline ModelSpec crnn(const std::string& backbone, int64_t classes = 37, int64_t hidden = 256) {
  ModelSpec spec;
  spec.backbone.name = backbone;
  spec.neck.name = "RNNEncoder";
  spec.neck.hidden_size = hidden;
  spec.head.name = "CTCHead";
  spec.head.out_channels = classes;
  return spec;
}

/// The error of an invalid network.
inline std::string why_not(const ModelSpec& spec) {
  const Error error = error_of([&] { build_model(spec); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  return error.what();
}

}  // namespace lockstep::inline internal
