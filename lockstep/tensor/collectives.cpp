#include "lockstep/tensor/collectives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/tensor/dtype.h"

namespace lockstep {
namespace {

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  std::string text = fmt::format("{} [{}] on {}", c10::toString(tensor.scalar_type()),
                                 fmt::join(tensor.sizes(), ", "), tensor.device().str());
  if (tensor.layout() == at::kStrided && !tensor.is_contiguous()) {
    text += fmt::format(" with strides [{}]", fmt::join(tensor.strides(), ", "));
  }
  return text;
}

/// What every collective asks of its tensor. Returns the element type.
DType checked(std::string_view op, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.is_contiguous() ||
      !tensor.device().is_cpu()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: needs a contiguous CPU tensor, got {}", op, describe(tensor)));
  }
  return to_dtype(tensor.scalar_type());
}

/// Checks that `whole` holds one `part` for each of the group's ranks.
DType checked_parts(std::string_view op, const at::Tensor& part, const at::Tensor& whole,
                    int size) {
  const DType dtype = checked(op, part);
  if (checked(op, whole) != dtype || whole.numel() != part.numel() * size) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {} ranks with {} each make no {}", op,
                                                         size, describe(part), describe(whole)));
  }
  return dtype;
}

}  // namespace

Work all_reduce(ProcessGroup& group, const at::Tensor& tensor, ReduceOp op,
                const CollectiveOptions& options) {
  const DType dtype = checked("all_reduce", tensor);
  return group.all_reduce(tensor.data_ptr(), tensor.numel(), dtype, op, options);
}

Work broadcast(ProcessGroup& group, const at::Tensor& tensor, int root,
               const CollectiveOptions& options) {
  const DType dtype = checked("broadcast", tensor);
  return group.broadcast(tensor.data_ptr(), tensor.numel(), dtype, root, options);
}

Work all_gather(ProcessGroup& group, const at::Tensor& part, const at::Tensor& out,
                const CollectiveOptions& options) {
  const DType dtype = checked_parts("all_gather", part, out, group.size());
  return group.all_gather(part.data_ptr(), out.data_ptr(), part.numel(), dtype, options);
}

Work reduce_scatter(ProcessGroup& group, const at::Tensor& in, const at::Tensor& out, ReduceOp op,
                    const CollectiveOptions& options) {
  const DType dtype = checked_parts("reduce_scatter", out, in, group.size());
  return group.reduce_scatter(in.data_ptr(), out.data_ptr(), out.numel(), dtype, op, options);
}

Work send(ProcessGroup& group, const at::Tensor& tensor, int destination, int tag) {
  const DType dtype = checked("send", tensor);
  return group.send(tensor.data_ptr(), tensor.numel(), dtype, destination, tag);
}

Work recv(ProcessGroup& group, const at::Tensor& tensor, int source, int tag) {
  const DType dtype = checked("recv", tensor);
  return group.recv(tensor.data_ptr(), tensor.numel(), dtype, source, tag);
}

}  // namespace lockstep
