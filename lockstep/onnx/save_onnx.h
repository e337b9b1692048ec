#pragma once
// A network as an ONNX file, for onnxruntime, TensorRT, OpenVINO and others.

#include <filesystem>
#include <vector>

#include "lockstep/model.h"

namespace lockstep::inline internal {

/// Replaces `path` by an ONNX file that computes compute() in evaluation mode: float32, opset 17,
/// input "input" (N, sizes), output "output", any N. Weights keep their names. The operations are
/// those of one forward pass, so branches that depend on values are fixed. `network` is on the CPU,
/// in float32; it keeps its mode. `sizes`: of an input without the batch, 3, H, W for pictures.
/// Errors: kInvalidArgument naming an operation that has no counterpart here, or for several
/// outputs; kIo.
void save_onnx(const std::filesystem::path& path, Model& network,
               const std::vector<int64_t>& sizes);

}  // namespace lockstep::inline internal
