#include "lockstep/onnx/save_onnx.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>

#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/error.h"
#include "lockstep/onnx/onnx_graph.h"

namespace lockstep::inline internal {
namespace {

namespace jit = torch::jit;

/// While it lives the network is in evaluation mode, and its parameters need no gradients: a trace
/// takes no others as constants.
class AsConstants {
 public:
  explicit AsConstants(Model& network) : network_(network), training_(network.is_training()) {
    network_.eval();
    for (at::Tensor& parameter : network_.parameters()) {
      if (!parameter.requires_grad()) continue;
      parameter.set_requires_grad(false);
      parameters_.push_back(parameter);
    }
  }
  ~AsConstants() {
    network_.train(training_);
    for (at::Tensor& parameter : parameters_) parameter.set_requires_grad(true);
  }
  AsConstants(const AsConstants&) = delete;
  AsConstants& operator=(const AsConstants&) = delete;

 private:
  Model& network_;
  bool training_;
  std::vector<at::Tensor> parameters_;
};

std::shared_ptr<jit::Graph> trace_of(Model& network, const at::Tensor& input) {
  const auto forward = [&](jit::Stack inputs) -> jit::Stack {
    jit::Stack outputs;
    for (at::Tensor& output : network.compute({inputs.at(0).toTensor()})) {
      outputs.emplace_back(std::move(output));
    }
    return outputs;
  };
  const auto no_name = [](const at::Tensor&) { return std::string(); };
  return jit::tracer::trace({input}, forward, no_name).first->graph;
}

bool is_structure(const jit::Node* node) {
  return node->kind() == c10::prim::Constant || node->kind() == c10::prim::ListConstruct;
}

/// The file's bytes, of a trace of `rows` rows. Errors: FixesRows; kInvalidArgument.
std::string encoded_trace(Model& network, const std::vector<int64_t>& sizes, int64_t rows) {
  std::vector<int64_t> batch = {rows};
  batch.insert(batch.end(), sizes.begin(), sizes.end());
  const auto trace = trace_of(network, at::zeros(batch));
  OnnxGraph graph(module_tensors(network), rows);
  graph.name_input(trace->inputs().at(0), "input");
  for (const jit::Node* node : trace->nodes()) {
    if (is_structure(node)) continue;
    TracedStep step(graph, node);
    if (!node->kind().is_aten()) step.refuse("is none of libtorch's");
    add_traced_step(step);
  }
  if (trace->outputs().size() != 1) {
    throw Error(ErrorCode::kInvalidArgument, "ONNX: the network has several outputs");
  }
  OnnxModel& model = graph.model();
  model.name = "network";
  const at::Tensor output = network.compute({at::zeros(batch).narrow(0, 0, 1)}).front();
  model.output = {"output", output.sizes().slice(1).vec()};
  model.nodes.push_back({"Identity", {graph.name_of(trace->outputs()[0])}, "output", {}});
  return encode_onnx(model);
}

/// A network may have the first number among its sizes, as of windows. They are no usual numbers of
/// heads, nor of patches of a square, with or without a token.
constexpr int64_t kTracedRows = 7;
constexpr int64_t kOtherRows = 11;

}  // namespace

void save_onnx(const std::filesystem::path& path, Model& network,
               const std::vector<int64_t>& sizes) {
  const at::NoGradGuard no_grad;
  const AsConstants as_constants(network);
  std::string bytes;
  try {
    bytes = encoded_trace(network, sizes, kTracedRows);
  } catch (const FixesRows&) {
    bytes = encoded_trace(network, sizes, kOtherRows);
  }
  write_file_atomically(path, bytes);
}

}  // namespace lockstep::inline internal
