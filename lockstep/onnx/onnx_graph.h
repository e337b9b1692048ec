#pragma once
// The graph of a trace on its way to ONNX: names of its values, and what a rule may ask of an
// operation.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/onnx/onnx_file.h"
#include "lockstep/weights.h"

namespace torch::jit {
struct Node;
struct Value;
}  // namespace torch::jit

namespace lockstep::inline internal {

/// The trace of so many rows has a size equal to it behind the first dimension. That is the
/// batch's, which would be fixed, or one of the network's: then a trace of other rows has none.
class FixesRows : public Error {
 public:
  using Error::Error;
};

/// Collects the nodes and initializers.
class OnnxGraph {
 public:
  /// `weights`: tensors with names of their own. `traced_rows`: of the batch that is traced.
  OnnxGraph(const TensorMap& weights, int64_t traced_rows);

  int64_t traced_rows() const { return traced_rows_; }

  void name_input(const torch::jit::Value* value, const std::string& name);
  /// The name of a value: of an input, of an operation's result, or of a constant, which becomes an
  /// initializer. Numbers become floats.
  std::string name_of(const torch::jit::Value* value);
  void set_name(const torch::jit::Value* value, std::string name) {
    names_[value] = std::move(name);
  }

  /// Adds an operation; returns the name of its result.
  std::string emit(const std::string& op, std::vector<std::string> inputs,
                   std::map<std::string, OnnxAttribute> attributes = {});
  std::string scalar(double value);
  std::string int_list(const std::vector<int64_t>& values);
  std::string int_scalar(int64_t value);
  /// The size of the batch: one int64.
  std::string rows();

  OnnxModel& model() { return model_; }

 private:
  std::string add_constant(std::string name, at::Tensor value);
  std::string next_name(const std::string& kind);

  const int64_t traced_rows_;
  OnnxModel model_;
  std::unordered_map<const torch::jit::Value*, std::string> names_;
  std::unordered_map<const void*, std::string> weights_;  ///< By the address of their data.
  std::set<std::string> initializers_;
  std::vector<at::Tensor> kept_;  ///< The initializers' bytes.
  std::string rows_;
  int64_t count_ = 0;
};

/// An operation of the trace.
class TracedStep {
 public:
  TracedStep(OnnxGraph& graph, const torch::jit::Node* node) : graph_(graph), node_(node) {}

  OnnxGraph& graph() { return graph_; }
  /// "relu"; an operation in place is named without its underscore.
  std::string op() const;
  size_t count() const;

  std::string tensor(size_t i);  ///< The name of the input.
  bool is_none(size_t i) const;
  bool flag(size_t i) const;
  int64_t whole(size_t i) const;
  double number(size_t i) const;
  std::string text(size_t i) const;
  std::vector<int64_t> whole_list(size_t i) const;
  std::vector<int64_t> pair(size_t i) const;  ///< Of rows and columns; one number is for both.
  std::vector<std::string> tensor_list(size_t i);
  std::vector<int64_t> sizes(size_t i) const;  ///< Of the input.
  std::vector<int64_t> result_sizes() const;

  /// The result is that of another operation, or of a new one.
  void result(const std::string& name);
  void result(const std::string& op, std::vector<std::string> inputs,
              std::map<std::string, OnnxAttribute> attributes = {}) {
    result(graph_.emit(op, std::move(inputs), std::move(attributes)));
  }
  /// Errors: always, kInvalidArgument naming the operation.
  [[noreturn]] void refuse(const std::string& why) const;
  /// Errors: FixesRows if `size` is the number of rows that are traced.
  void check_no_rows(int64_t size) const;

 private:
  std::string refusal(const std::string& why) const;
  c10::IValue constant(size_t i) const;

  OnnxGraph& graph_;
  const torch::jit::Node* node_;
};

/// Adds what computes the step. Errors: kInvalidArgument for an operation without a rule, naming
/// it.
void add_traced_step(TracedStep& step);

}  // namespace lockstep::inline internal
