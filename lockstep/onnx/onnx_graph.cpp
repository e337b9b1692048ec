#include "lockstep/onnx/onnx_graph.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace jit = torch::jit;

std::vector<int64_t> sizes_of(const jit::Value* value) {
  if (const auto type = value->type()->cast<c10::TensorType>()) {
    if (const auto sizes = type->sizes().concrete_sizes()) return *sizes;
  }
  throw Error(ErrorCode::kInternal, "ONNX: the trace has a tensor without sizes");
}

}  // namespace

OnnxGraph::OnnxGraph(const TensorMap& weights, int64_t traced_rows) : traced_rows_(traced_rows) {
  for (const auto& [name, tensor] : weights) {
    if (tensor.numel() > 0) weights_.emplace(tensor.data_ptr(), name);
  }
}

std::string OnnxGraph::next_name(const std::string& kind) {
  return fmt::format("{}_{}", kind, count_++);
}

void OnnxGraph::name_input(const jit::Value* value, const std::string& name) {
  names_[value] = name;
  model_.input = {name, sizes_of(value)};
  model_.input.dims.erase(model_.input.dims.begin());
}

std::string OnnxGraph::name_of(const jit::Value* value) {
  if (const auto found = names_.find(value); found != names_.end()) return found->second;
  const auto constant = jit::toIValue(value);
  if (!constant) throw Error(ErrorCode::kInternal, "ONNX: the trace has a value without a source");
  std::string name;
  if (constant->isTensor()) {
    const at::Tensor tensor = constant->toTensor();
    const auto weight = weights_.find(tensor.data_ptr());
    name = weight == weights_.end() ? next_name("constant") : weight->second;
    if (!initializers_.contains(name)) add_constant(name, tensor);
  } else {
    name = scalar(constant->toScalar().toDouble());
  }
  names_[value] = name;
  return name;
}

std::string OnnxGraph::add_constant(std::string name, at::Tensor value) {
  const bool whole = at::isIntegralType(value.scalar_type(), /*includeBool=*/true);
  value = value.detach().to(whole ? at::kLong : at::kFloat).contiguous();
  kept_.push_back(value);
  initializers_.insert(name);
  model_.initializers.push_back({name,
                                 whole ? OnnxType::kInt64 : OnnxType::kFloat,
                                 value.sizes().vec(),
                                 {static_cast<const char*>(value.data_ptr()), value.nbytes()}});
  return name;
}

std::string OnnxGraph::emit(const std::string& op, std::vector<std::string> inputs,
                            std::map<std::string, OnnxAttribute> attributes) {
  std::string name = next_name("value");
  model_.nodes.push_back({op, std::move(inputs), name, std::move(attributes)});
  return name;
}

std::string OnnxGraph::scalar(double value) {
  return add_constant(next_name("constant"), at::scalar_tensor(value, at::kFloat));
}

std::string OnnxGraph::int_list(const std::vector<int64_t>& values) {
  return add_constant(next_name("constant"), at::tensor(values, at::kLong));
}

std::string OnnxGraph::int_scalar(int64_t value) {
  return add_constant(next_name("constant"), at::scalar_tensor(value, at::kLong));
}

std::string OnnxGraph::rows() {
  if (rows_.empty()) {
    rows_ = emit("Shape", {model_.input.name}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
  }
  return rows_;
}

std::string TracedStep::op() const {
  std::string name = node_->kind().toUnqualString();
  if (name.size() > 1 && name.back() == '_') name.pop_back();
  return name;
}

size_t TracedStep::count() const {
  return node_->inputs().size();
}

std::string TracedStep::tensor(size_t i) {
  return graph_.name_of(node_->input(i));
}

c10::IValue TracedStep::constant(size_t i) const {
  if (const auto value = jit::toIValue(node_->input(i))) return *value;
  refuse("depends on values of the picture");
}

bool TracedStep::is_none(size_t i) const {
  const auto value = jit::toIValue(node_->input(i));
  return value && value->isNone();
}

bool TracedStep::flag(size_t i) const {
  return constant(i).toBool();
}

int64_t TracedStep::whole(size_t i) const {
  return constant(i).toInt();
}

double TracedStep::number(size_t i) const {
  return constant(i).toScalar().toDouble();
}

std::string TracedStep::text(size_t i) const {
  return constant(i).toStringRef();
}

std::vector<int64_t> TracedStep::whole_list(size_t i) const {
  const jit::Node* source = node_->input(i)->node();
  if (source->kind() != c10::prim::ListConstruct) return constant(i).toIntVector();
  std::vector<int64_t> values;
  for (const jit::Value* item : source->inputs()) {
    const auto value = jit::toIValue(item);
    if (!value) refuse("has sizes that depend on the picture");
    values.push_back(value->toInt());
  }
  return values;
}

std::vector<int64_t> TracedStep::pair(size_t i) const {
  std::vector<int64_t> values = whole_list(i);
  if (values.size() == 1) values.push_back(values[0]);
  return values;
}

std::vector<std::string> TracedStep::tensor_list(size_t i) {
  std::vector<std::string> names;
  for (const jit::Value* item : node_->input(i)->node()->inputs()) {
    names.push_back(graph_.name_of(item));
  }
  return names;
}

std::vector<int64_t> TracedStep::sizes(size_t i) const {
  return sizes_of(node_->input(i));
}

std::vector<int64_t> TracedStep::result_sizes() const {
  return sizes_of(node_->output());
}

void TracedStep::result(const std::string& name) {
  graph_.set_name(node_->output(), name);
}

std::string TracedStep::refusal(const std::string& why) const {
  return fmt::format("ONNX: the network's operation '{}' {}", op(), why);
}

void TracedStep::refuse(const std::string& why) const {
  throw Error(ErrorCode::kInvalidArgument, refusal(why));
}

void TracedStep::check_no_rows(int64_t size) const {
  if (size != graph_.traced_rows()) return;
  throw FixesRows(ErrorCode::kInvalidArgument, refusal("would fix the size of the batch"));
}

}  // namespace lockstep::inline internal
