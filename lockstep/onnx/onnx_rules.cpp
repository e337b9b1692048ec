// Which operations of ONNX compute an operation of libtorch.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "lockstep/onnx/onnx_graph.h"

namespace lockstep::inline internal {
namespace {

using Names = std::vector<std::string>;
using Rule = void (*)(TracedStep& step);

/// Of `rank` dimensions, the one that may count from the end.
int64_t from_front(int64_t dim, size_t rank) {
  return dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
}

/// Both ends of rows and columns have the same padding.
std::vector<int64_t> both_ends(const std::vector<int64_t>& padding) {
  return {padding[0], padding[1], padding[0], padding[1]};
}

void one_to_one(TracedStep& step, const char* op) {
  step.result(op, {step.tensor(0)});
}

void of_two(TracedStep& step, const char* op) {
  const bool plain = step.count() < 3 || step.is_none(2);
  const bool adds = step.op() == "add" || step.op() == "sub";
  if (!plain && !(adds && step.number(2) == 1)) step.refuse("has a factor, or a way of rounding");
  step.result(op, {step.tensor(0), step.tensor(1)});
}

void same_value(TracedStep& step) {
  step.result(step.tensor(0));
}

void dropout_rule(TracedStep& step) {
  if (step.flag(2)) step.refuse("is for training: the network must be in evaluation mode");
  same_value(step);
}

void conv_rule(TracedStep& step, size_t groups) {
  const auto kernel = step.sizes(1);
  if (kernel.size() != 4) step.refuse("has a kernel that is not two-dimensional");
  Names inputs = {step.tensor(0), step.tensor(1)};
  if (!step.is_none(2)) inputs.push_back(step.tensor(2));
  step.result("Conv", inputs,
              {{"kernel_shape", std::vector<int64_t>(kernel.begin() + 2, kernel.end())},
               {"strides", step.pair(3)},
               {"pads", both_ends(step.pair(4))},
               {"dilations", step.pair(5)},
               {"group", step.whole(groups)}});
}

void convolution_rule(TracedStep& step) {
  if (step.flag(6)) step.refuse("is transposed");
  conv_rule(step, 8);
}

void conv2d_rule(TracedStep& step) {
  conv_rule(step, 6);
}

void batch_norm_rule(TracedStep& step) {
  if (step.flag(5)) step.refuse("is for training: the network must be in evaluation mode");
  if (step.is_none(1)) step.refuse("has no weights");
  Names inputs;
  for (size_t i = 0; i < 5; ++i) inputs.push_back(step.tensor(i));
  step.result("BatchNormalization", inputs, {{"epsilon", static_cast<float>(step.number(7))}});
}

void layer_norm_rule(TracedStep& step) {
  if (step.is_none(2) || step.is_none(3)) step.refuse("has no weights");
  step.result("LayerNormalization", {step.tensor(0), step.tensor(2), step.tensor(3)},
              {{"axis", -static_cast<int64_t>(step.whole_list(1).size())},
               {"epsilon", static_cast<float>(step.number(4))}});
}

void max_pool_rule(TracedStep& step) {
  const auto kernel = step.pair(1);
  const auto given = step.whole_list(2);
  step.result("MaxPool", {step.tensor(0)},
              {{"kernel_shape", kernel},
               {"strides", given.empty() ? kernel : step.pair(2)},
               {"pads", both_ends(step.pair(3))},
               {"dilations", step.pair(4)},
               {"ceil_mode", int64_t{step.flag(5)}}});
}

void adaptive_pool_rule(TracedStep& step) {
  if (step.pair(1) != std::vector<int64_t>{1, 1}) step.refuse("has more than one pixel as result");
  step.result("GlobalAveragePool", {step.tensor(0)});
}

void mean_rule(TracedStep& step) {
  if (step.count() < 4) step.refuse("is over all values");
  step.result("ReduceMean", {step.tensor(0)},
              {{"axes", step.whole_list(1)}, {"keepdims", int64_t{step.flag(2)}}});
}

void linear_rule(TracedStep& step) {
  auto& graph = step.graph();
  if (step.sizes(0).size() == 2 && !step.is_none(2)) {
    return step.result("Gemm", {step.tensor(0), step.tensor(1), step.tensor(2)},
                       {{"transB", int64_t{1}}});
  }
  const auto weight =
      graph.emit("Transpose", {step.tensor(1)}, {{"perm", std::vector<int64_t>{1, 0}}});
  const auto product = graph.emit("MatMul", {step.tensor(0), weight});
  if (step.is_none(2)) return step.result(product);
  step.result("Add", {product, step.tensor(2)});
}

/// bias + a b.
void addmm_rule(TracedStep& step) {
  if (step.number(3) != 1 || step.number(4) != 1) step.refuse("has factors (alpha, beta)");
  step.result("Gemm", {step.tensor(1), step.tensor(2), step.tensor(0)});
}

/// x / 2 (1 + erf(x / sqrt 2)): ONNX has an operation of its own only since opset 20.
void gelu_rule(TracedStep& step) {
  if (step.count() > 1 && step.text(1) != "none") step.refuse("is an approximation");
  auto& graph = step.graph();
  const auto x = step.tensor(0);
  const auto part = graph.emit("Erf", {graph.emit("Div", {x, graph.scalar(std::sqrt(2.0))})});
  const auto share = graph.emit("Add", {part, graph.scalar(1)});
  step.result("Mul", {graph.emit("Mul", {x, share}), graph.scalar(0.5)});
}

void silu_rule(TracedStep& step) {
  const auto x = step.tensor(0);
  step.result("Mul", {x, step.graph().emit("Sigmoid", {x})});
}

void hardsigmoid_rule(TracedStep& step) {
  step.result("HardSigmoid", {step.tensor(0)}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}});
}

void softmax_rule(TracedStep& step) {
  step.result("Softmax", {step.tensor(0)}, {{"axis", step.whole(1)}});
}

void permute_rule(TracedStep& step) {
  auto order = step.whole_list(1);
  for (auto& dim : order) dim = from_front(dim, order.size());
  step.result("Transpose", {step.tensor(0)}, {{"perm", order}});
}

void swap_dims(TracedStep& step, int64_t a, int64_t b) {
  const size_t rank = step.sizes(0).size();
  std::vector<int64_t> order;
  for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
  std::swap(order[static_cast<size_t>(from_front(a, rank))],
            order[static_cast<size_t>(from_front(b, rank))]);
  step.result("Transpose", {step.tensor(0)}, {{"perm", order}});
}

void transpose_rule(TracedStep& step) {
  swap_dims(step, step.whole(1), step.whole(2));
}

void t_rule(TracedStep& step) {
  swap_dims(step, 0, 1);
}

void select_rule(TracedStep& step) {
  step.result("Gather", {step.tensor(0), step.graph().int_scalar(step.whole(2))},
              {{"axis", step.whole(1)}});
}

void cat_rule(TracedStep& step) {
  step.result("Concat", step.tensor_list(0), {{"axis", step.whole(1)}});
}

/// The first size follows from the others, so the batch may have any.
void reshape_rule(TracedStep& step) {
  auto sizes = step.result_sizes();
  if (sizes.empty()) step.refuse("has a single number as result");
  for (size_t i = 1; i < sizes.size(); ++i) step.check_no_rows(sizes[i]);
  sizes[0] = -1;
  step.result("Reshape", {step.tensor(0), step.graph().int_list(sizes)});
}

/// Each size is the batch's, or a fixed one, or 1: as it is.
void expand_rule(TracedStep& step) {
  auto& graph = step.graph();
  auto sizes = step.result_sizes();
  const auto own = step.sizes(0);
  const size_t more = sizes.size() - own.size();
  for (size_t i = more; i < sizes.size(); ++i) {
    if (sizes[i] == own[i - more]) sizes[i] = 1;
  }
  for (size_t i = 1; i < sizes.size(); ++i) step.check_no_rows(sizes[i]);
  if (sizes[0] != graph.traced_rows())
    return step.result("Expand", {step.tensor(0), graph.int_list(sizes)});
  const auto rest = graph.int_list({sizes.begin() + 1, sizes.end()});
  const auto shape = graph.emit("Concat", {graph.rows(), rest}, {{"axis", int64_t{0}}});
  step.result("Expand", {step.tensor(0), shape});
}

const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> kRules = {
      {"_convolution", convolution_rule},
      {"_softmax", softmax_rule},
      {"_unsafe_view", reshape_rule},
      {"adaptive_avg_pool2d", adaptive_pool_rule},
      {"add", [](TracedStep& step) { of_two(step, "Add"); }},
      {"addmm", addmm_rule},
      {"alias", same_value},
      {"batch_norm", batch_norm_rule},
      {"cat", cat_rule},
      {"clone", same_value},
      {"contiguous", same_value},
      {"conv2d", conv2d_rule},
      {"convolution", convolution_rule},
      {"detach", same_value},
      {"div", [](TracedStep& step) { of_two(step, "Div"); }},
      {"dropout", dropout_rule},
      {"expand", expand_rule},
      {"flatten", reshape_rule},
      {"gelu", gelu_rule},
      {"hardsigmoid", hardsigmoid_rule},
      {"hardswish", [](TracedStep& step) { one_to_one(step, "HardSwish"); }},
      {"layer_norm", layer_norm_rule},
      {"linear", linear_rule},
      {"matmul", [](TracedStep& step) { of_two(step, "MatMul"); }},
      {"max_pool2d", max_pool_rule},
      {"mean", mean_rule},
      {"mul", [](TracedStep& step) { of_two(step, "Mul"); }},
      {"permute", permute_rule},
      {"relu", [](TracedStep& step) { one_to_one(step, "Relu"); }},
      {"reshape", reshape_rule},
      {"select", select_rule},
      {"sigmoid", [](TracedStep& step) { one_to_one(step, "Sigmoid"); }},
      {"silu", silu_rule},
      {"softmax", softmax_rule},
      {"squeeze", reshape_rule},
      {"sub", [](TracedStep& step) { of_two(step, "Sub"); }},
      {"t", t_rule},
      {"tanh", [](TracedStep& step) { one_to_one(step, "Tanh"); }},
      {"transpose", transpose_rule},
      {"unflatten", reshape_rule},
      {"unsqueeze", reshape_rule},
      {"view", reshape_rule},
  };
  return kRules;
}

}  // namespace

void add_traced_step(TracedStep& step) {
  const auto found = rules().find(step.op());
  if (found != rules().end()) return found->second(step);
  Names known;
  for (const auto& [name, rule] : rules()) known.emplace_back(name);
  step.refuse(fmt::format("is not one that is written (these are: {})", fmt::join(known, ", ")));
}

}  // namespace lockstep::inline internal
