#include "lockstep/collectives.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/counted.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device/dtype.h"
#include "lockstep/tensor/device/staging.h"
#include "lockstep/tensor/device_backends.h"

namespace lockstep {
namespace {

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  std::string text = fmt::format("{} [{}] on {}", c10::toString(tensor.scalar_type()),
                                 fmt::join(tensor.sizes(), ", "), tensor.device().str());
  if (tensor.layout() == at::kStrided && !tensor.is_contiguous()) {
    text += fmt::format(" with strides [{}]", fmt::join(tensor.strides(), ", "));
  }
  if (tensor.is_conj()) text += " yet to be conjugated (see resolve_conj())";
  if (tensor.is_neg()) text += " yet to be negated (see resolve_neg())";
  return text;
}

/// Checks the requirements of every collective on its tensor. Returns the element type.
DType checked(std::string_view op, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.is_contiguous() ||
      tensor.is_meta() || tensor.is_conj() || tensor.is_neg()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: needs a contiguous tensor, got {}", op, describe(tensor)));
  }
  return to_dtype(tensor.scalar_type());
}

/// Checks that `whole` holds one `part` for each of the group's ranks.
DType checked_parts(std::string_view op, const at::Tensor& part, const at::Tensor& whole,
                    int size) {
  const DType dtype = checked(op, part);
  if (checked(op, whole) != dtype || whole.numel() != part.numel() * size) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} with {} each make no {}", op, counted(size, "rank"),
                            describe(part), describe(whole)));
  }
  return dtype;
}

/// Checks that all are of one type, which it returns.
DType checked_list(std::string_view op, std::span<const at::Tensor> tensors) {
  DType dtype = DType::kFloat32;
  for (const auto& tensor : tensors) {
    const DType own = checked(op, tensor);
    if (&tensor != &tensors.front() && own != dtype) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: {} and {} in one call", op, describe(tensors.front()),
                              describe(tensor)));
    }
    dtype = own;
  }
  return dtype;
}

/// The same, and that wholes[i] holds one parts[i] for each rank.
DType checked_lists(std::string_view op, std::span<const at::Tensor> parts,
                    std::span<const at::Tensor> wholes, int size) {
  if (parts.size() != wholes.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} and {}", op, counted(parts.size(), "part"),
                            counted(wholes.size(), "whole")));
  }
  for (size_t i = 0; i < parts.size(); ++i) checked_parts(op, parts[i], wholes[i], size);
  return checked_list(op, parts);
}

/// Checks that there is one row count per rank, and rows for all of them in `tensor`. Returns the
/// number of elements for each.
std::vector<int64_t> checked_rows(std::string_view op, const at::Tensor& tensor,
                                  std::span<const int64_t> rows, int64_t row_elements, int size) {
  const int64_t sum = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  const bool fits = tensor.dim() > 0 && tensor.size(0) == sum &&
                    tensor.numel() == sum * row_elements &&
                    std::all_of(rows.begin(), rows.end(), [](int64_t n) { return n >= 0; });
  if (static_cast<int>(rows.size()) != size || !fits) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: rows [{}] of {} elements for {} make no {}", op, fmt::join(rows, ", "),
                    row_elements, counted(size, "rank"), describe(tensor)));
  }
  std::vector<int64_t> counts;
  for (const int64_t count : rows) counts.push_back(count * row_elements);
  return counts;
}

/// Elements of one row: all dimensions but the first.
int64_t row_elements(const at::Tensor& tensor) {
  int64_t elements = 1;
  for (int64_t i = 1; i < tensor.dim(); ++i) elements *= tensor.size(i);
  return elements;
}

/// Checks that two tensors hold the same kind of rows. Returns the element type.
DType checked_like(std::string_view op, const at::Tensor& one, const at::Tensor& other) {
  const DType dtype = checked(op, one);
  if (checked(op, other) != dtype || row_elements(one) != row_elements(other)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} and {} have different rows or types", op, describe(one),
                            describe(other)));
  }
  return dtype;
}

/// For tensors on a device: one tensor of all of them, reduced and copied back.
Work all_reduce_as_one(ProcessGroup& group, std::span<const at::Tensor> tensors, ReduceOp op,
                       const CollectiveOptions& options, CallSite site) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> rows;
  for (const auto& tensor : tensors) rows.push_back(tensor.detach().reshape({-1}));
  const at::Tensor one = at::cat(rows);
  return all_reduce(group, one, op, options, site).then([one, rows] {
    const at::NoGradGuard no_grad_here;
    int64_t at = 0;
    for (const auto& row : rows) {
      row.copy_(one.narrow(0, at, row.numel()));
      at += row.numel();
    }
  });
}

[[maybe_unused]] const bool device_backends_are_registered = register_device_backends();

}  // namespace

std::optional<c10::Device> device_of(const ProcessGroup& group) {
  if (group.device().empty()) return std::nullopt;
  return c10::Device(group.device());
}

Work all_reduce(ProcessGroup& group, const at::Tensor& tensor, ReduceOp op,
                const CollectiveOptions& options, CallSite site) {
  const DType dtype = checked("all_reduce", tensor);
  Staging staging(group, {tensor}, options, op);
  void* data = staging.in_out(tensor);
  return std::move(staging).finish(
      group.all_reduce(data, tensor.numel(), dtype, op, staging.options(), site));
}

Work broadcast(ProcessGroup& group, const at::Tensor& tensor, int root,
               const CollectiveOptions& options, CallSite site) {
  const DType dtype = checked("broadcast", tensor);
  Staging staging(group, {tensor}, options);
  void* data = staging.in_out(tensor);
  return std::move(staging).finish(
      group.broadcast(data, tensor.numel(), dtype, root, staging.options(), site));
}

Work all_gather(ProcessGroup& group, const at::Tensor& part, const at::Tensor& out,
                const CollectiveOptions& options, CallSite site) {
  const DType dtype = checked_parts("all_gather", part, out, group.size());
  Staging staging(group, {part, out}, options);
  void* from = staging.in(part);
  void* to = staging.out(out);
  return std::move(staging).finish(
      group.all_gather(from, to, part.numel(), dtype, staging.options(), site));
}

Work reduce_scatter(ProcessGroup& group, const at::Tensor& in, const at::Tensor& out, ReduceOp op,
                    const CollectiveOptions& options, CallSite site) {
  const DType dtype = checked_parts("reduce_scatter", out, in, group.size());
  Staging staging(group, {in, out}, options, op);
  void* from = staging.in(in);
  void* to = staging.out(out);
  return std::move(staging).finish(
      group.reduce_scatter(from, to, out.numel(), dtype, op, staging.options(), site));
}

Work reduce(ProcessGroup& group, const at::Tensor& tensor, ReduceOp op, int root,
            const CollectiveOptions& options, CallSite site) {
  const DType dtype = checked("reduce", tensor);
  Staging staging(group, {tensor}, options, op);
  void* data = group.rank() == root ? staging.in_out(tensor) : staging.in(tensor);
  return std::move(staging).finish(
      group.reduce(data, tensor.numel(), dtype, op, root, staging.options(), site));
}

Work gather(ProcessGroup& group, const at::Tensor& part, const at::Tensor& out, int root,
            const CollectiveOptions& options, CallSite site) {
  const bool is_root = group.rank() == root;
  const DType dtype =
      is_root ? checked_parts("gather", part, out, group.size()) : checked("gather", part);
  Staging staging(group, {part, is_root ? out : part}, options);
  void* from = staging.in(part);
  void* to = is_root ? staging.out(out) : nullptr;
  return std::move(staging).finish(
      group.gather(from, to, part.numel(), dtype, root, staging.options(), site));
}

Work scatter(ProcessGroup& group, const at::Tensor& in, const at::Tensor& part, int root,
             const CollectiveOptions& options, CallSite site) {
  const bool is_root = group.rank() == root;
  const DType dtype =
      is_root ? checked_parts("scatter", part, in, group.size()) : checked("scatter", part);
  Staging staging(group, {part, is_root ? in : part}, options);
  void* from = is_root ? staging.in(in) : nullptr;
  void* to = staging.out(part);
  return std::move(staging).finish(
      group.scatter(from, to, part.numel(), dtype, root, staging.options(), site));
}

Work all_to_all(ProcessGroup& group, const at::Tensor& in, const at::Tensor& out,
                const CollectiveOptions& options, CallSite site) {
  const DType dtype = checked("all_to_all", in);
  if (checked("all_to_all", out) != dtype || in.numel() != out.numel() ||
      in.numel() % group.size() != 0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("all_to_all: {} and {} are not one equal part for each of {}",
                            describe(in), describe(out), counted(group.size(), "rank")));
  }
  Staging staging(group, {in, out}, options);
  void* from = staging.in(in);
  void* to = staging.out(out);
  return std::move(staging).finish(
      group.all_to_all(from, to, in.numel() / group.size(), dtype, staging.options(), site));
}

Work all_gatherv(ProcessGroup& group, const at::Tensor& part, const at::Tensor& out,
                 std::span<const int64_t> rows, const CollectiveOptions& options, CallSite site) {
  const DType dtype = checked_like("all_gatherv", part, out);
  const auto counts = checked_rows("all_gatherv", out, rows, row_elements(out), group.size());
  if (part.numel() != counts[static_cast<size_t>(group.rank())]) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("all_gatherv: rank {} has {} rows in the list, gives {}", group.rank(),
                            rows[static_cast<size_t>(group.rank())], describe(part)));
  }
  Staging staging(group, {part, out}, options);
  void* from = staging.in(part);
  void* to = staging.out(out);
  return std::move(staging).finish(
      group.all_gatherv(from, to, counts, dtype, staging.options(), site));
}

Work all_to_allv(ProcessGroup& group, const at::Tensor& in, std::span<const int64_t> send_rows,
                 const at::Tensor& out, std::span<const int64_t> receive_rows,
                 const CollectiveOptions& options, CallSite site) {
  const DType dtype = checked_like("all_to_allv", in, out);
  const auto sends = checked_rows("all_to_allv", in, send_rows, row_elements(in), group.size());
  const auto receives =
      checked_rows("all_to_allv", out, receive_rows, row_elements(out), group.size());
  Staging staging(group, {in, out}, options);
  void* from = staging.in(in);
  void* to = staging.out(out);
  return std::move(staging).finish(
      group.all_to_allv(from, sends, to, receives, dtype, staging.options(), site));
}

Work all_reduce_coalesced(ProcessGroup& group, std::span<const at::Tensor> tensors, ReduceOp op,
                          const CollectiveOptions& options, CallSite site) {
  std::vector<Buffer> buffers;
  Staging staging(options);
  const DType dtype = checked_list("all_reduce_coalesced", tensors);
  if (stay_on_device(group, tensors, op)) {
    return all_reduce_as_one(group, tensors, op, options, site);
  }
  for (const auto& tensor : tensors) buffers.push_back({staging.in_out(tensor), tensor.numel()});
  return std::move(staging).finish(
      group.all_reduce_coalesced(buffers, dtype, op, staging.options(), site));
}

Work all_gather_coalesced(ProcessGroup& group, std::span<const at::Tensor> parts,
                          std::span<const at::Tensor> outs, const CollectiveOptions& options,
                          CallSite site) {
  const DType dtype = checked_lists("all_gather_coalesced", parts, outs, group.size());
  std::vector<BufferPair> pairs;
  Staging staging(options);
  for (size_t i = 0; i < parts.size(); ++i) {
    pairs.push_back({staging.in(parts[i]), staging.out(outs[i]), parts[i].numel()});
  }
  return std::move(staging).finish(
      group.all_gather_coalesced(pairs, dtype, staging.options(), site));
}

Work reduce_scatter_coalesced(ProcessGroup& group, std::span<const at::Tensor> ins,
                              std::span<const at::Tensor> outs, ReduceOp op,
                              const CollectiveOptions& options, CallSite site) {
  const DType dtype = checked_lists("reduce_scatter_coalesced", outs, ins, group.size());
  std::vector<BufferPair> pairs;
  Staging staging(options);
  for (size_t i = 0; i < outs.size(); ++i) {
    pairs.push_back({staging.in(ins[i]), staging.out(outs[i]), outs[i].numel()});
  }
  return std::move(staging).finish(
      group.reduce_scatter_coalesced(pairs, dtype, op, staging.options(), site));
}

Work send(ProcessGroup& group, const at::Tensor& tensor, int destination, int tag, CallSite site) {
  const DType dtype = checked("send", tensor);
  Staging staging;
  void* data = staging.in(tensor);
  return std::move(staging).finish(group.send(data, tensor.numel(), dtype, destination, tag, site));
}

Work recv(ProcessGroup& group, const at::Tensor& tensor, int source, int tag, CallSite site) {
  const DType dtype = checked("recv", tensor);
  Staging staging;
  void* data = staging.out(tensor);
  return std::move(staging).finish(group.recv(data, tensor.numel(), dtype, source, tag, site));
}

at::Tensor from_shared(std::shared_ptr<SharedBuffer> buffer, int64_t offset, at::IntArrayRef sizes,
                       at::ScalarType dtype, at::IntArrayRef strides) {
  const auto element = static_cast<int64_t>(c10::elementSize(dtype));
  int64_t bytes = element;
  for (const int64_t size : sizes) bytes *= size;
  if (offset < 0 || offset % element != 0 || offset + bytes > buffer->bytes()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a {} tensor of {} bytes at offset {} does not fit a shared buffer of "
                            "{} bytes",
                            c10::toString(dtype), bytes, offset, buffer->bytes()));
  }
  auto* data = static_cast<char*>(buffer->data()) + offset;
  const auto keep_alive = [owner = std::move(buffer)](void*) {};
  const auto options = at::TensorOptions().dtype(dtype);
  if (strides.empty()) return at::from_blob(data, sizes, keep_alive, options);
  return at::from_blob(data, sizes, strides, keep_alive, options);
}

}  // namespace lockstep
