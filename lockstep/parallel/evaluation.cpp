#include "lockstep/evaluation.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <numeric>

#include "lockstep/collectives.h"
#include "lockstep/error.h"
#include "lockstep/parallel/module_state.h"

namespace lockstep {
namespace {

std::vector<int64_t> gather_counts(ProcessGroup& group, int64_t own, CallSite site) {
  std::vector<int64_t> counts(static_cast<size_t>(group.size()));
  group.all_gather(&own, counts.data(), 1, DType::kInt64, {}, site).wait();
  return counts;
}

/// The reason why a tensor cannot be gathered by rows; null if it can. All ranks must enter the
/// first collective, or the others would wait for a rank that has thrown.
const char* why_no_rows(const at::Tensor& rows) {
  if (!rows.defined()) return "an undefined tensor";
  if (rows.layout() != at::kStrided || rows.is_meta()) return "a tensor that is not dense";
  return rows.dim() == 0 ? "a tensor without dimensions" : nullptr;
}

int64_t total(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

}  // namespace

void broadcast_buffers(ProcessGroup& group, const torch::nn::Module& module) {
  broadcast_values(group, buffers_of(module));
}

double global_mean(ProcessGroup& group, double sum, int64_t count, CallSite site) {
  std::array<double, 2> values = {sum, static_cast<double>(count)};
  group.all_reduce(values.data(), values.size(), DType::kFloat64, ReduceOp::kSum, {}, site).wait();
  return values[0] / values[1];
}

std::map<std::string, double> global_sums(ProcessGroup& group,
                                          const std::map<std::string, double>& sums,
                                          CallSite site) {
  std::vector<std::string> names;
  std::vector<double> values;
  for (const auto& [name, value] : sums) {
    names.push_back(fmt::format("metric '{}'", name));
    values.push_back(value);
  }
  check_same_on_all_ranks(group, names, site);
  if (!values.empty()) {
    group.all_reduce(values.data(), std::ssize(values), DType::kFloat64, ReduceOp::kSum, {}, site)
        .wait();
  }
  std::map<std::string, double> all = sums;
  size_t i = 0;
  for (auto& [name, value] : all) value = values[i++];
  return all;
}

at::Tensor gather_rows(ProcessGroup& group, const at::Tensor& rows, CallSite site) {
  const auto obstacle = why_no_rows(rows);
  check_same_on_all_ranks(
      group,
      {obstacle ? std::string(obstacle)
                : fmt::format("rows of {} [{}]", c10::toString(rows.scalar_type()),
                              fmt::join(rows.sizes().slice(1), ", "))},
      site);
  if (obstacle)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("gather_rows of {}", obstacle));
  const auto counts = gather_counts(group, rows.size(0), site);
  auto sizes = rows.sizes().vec();
  sizes[0] = total(counts);
  at::Tensor all = at::empty(sizes, rows.options().requires_grad(false));
  if (all.numel() == 0) return all;
  const at::Tensor own = rows.detach().resolve_conj().resolve_neg().contiguous();
  all_gatherv(group, own, all, counts, {}, site).wait();
  return all;
}

std::vector<std::string> gather_texts(ProcessGroup& group, const std::vector<std::string>& texts,
                                      CallSite site) {
  std::vector<int64_t> lengths;
  std::string joined;
  for (const std::string& text : texts) {
    lengths.push_back(std::ssize(text));
    joined += text;
  }
  const auto counts = gather_counts(group, std::ssize(lengths), site);
  const auto bytes = gather_counts(group, std::ssize(joined), site);
  std::vector<int64_t> all_lengths(static_cast<size_t>(total(counts)));
  std::string all_bytes(static_cast<size_t>(total(bytes)), '\0');
  if (!all_lengths.empty()) {
    group.all_gatherv(lengths.data(), all_lengths.data(), counts, DType::kInt64, {}, site).wait();
  }
  if (!all_bytes.empty()) {
    group.all_gatherv(joined.data(), all_bytes.data(), bytes, DType::kUint8, {}, site).wait();
  }
  std::vector<std::string> all;
  size_t begin = 0;
  for (const int64_t length : all_lengths) {
    all.push_back(all_bytes.substr(begin, static_cast<size_t>(length)));
    begin += static_cast<size_t>(length);
  }
  return all;
}

}  // namespace lockstep
