// The part of the suite for many buffers in one call.

#include "tests/comm/support/buffers.h"
#include "tests/comm/support/conformance.h"

namespace lockstep::testing {
namespace {

constexpr int64_t kCounts[] = {5, 0, 1001, 200'003, 16'383, 16'384, 1, 16'383, 7};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kPremulSum};

/// Values of `count` float32 for each of kCounts, times `parts`.
std::vector<Bytes> values_of_all(int rank, int parts) {
  std::vector<Bytes> data;
  for (const int64_t count : kCounts) {
    data.push_back(make_values(DType::kFloat32, count * parts, rank, data.size()));
  }
  return data;
}

void check_sums(ProcessGroup& group, ReduceOp op) {
  std::vector<Bytes> data = values_of_all(group.rank(), 1);
  std::vector<lockstep::Buffer> buffers;
  for (size_t i = 0; i < data.size(); ++i) buffers.push_back({data[i].data(), kCounts[i]});
  const auto options = options_for(op, group.rank(), op == ReduceOp::kSum);
  group.all_reduce_coalesced(buffers, DType::kFloat32, op, options).wait();
  for (size_t i = 0; i < data.size(); ++i) {
    require_elements(
        data[i].data(), DType::kFloat32, kCounts[i],
        [&](int64_t at, std::byte* out) {
          reference_element(DType::kFloat32, op, group.size(), i, at, out);
        },
        fmt::format("all_reduce_coalesced, buffer {}", i));
  }
}

/// Every second one in its own place.
void check_gathers(ProcessGroup& group, bool async) {
  const std::vector<Bytes> data = values_of_all(group.rank(), 1);
  std::vector<Bytes> all;
  std::vector<BufferPair> pairs;
  for (size_t i = 0; i < data.size(); ++i) {
    all.emplace_back(data[i].size() * static_cast<size_t>(group.size()));
    const void* in = data[i].data();
    if (i % 2 == 1 && !data[i].empty()) {
      auto* const place = all[i].data() + static_cast<size_t>(group.rank()) * data[i].size();
      in = std::memcpy(place, in, data[i].size());
    }
    pairs.push_back({in, all[i].data(), kCounts[i]});
  }
  group.all_gather_coalesced(pairs, DType::kFloat32, {.async = async}).wait();
  for (size_t i = 0; i < data.size(); ++i) {
    for (int rank = 0; rank < group.size(); ++rank) {
      require_elements(
          all[i].data() + static_cast<size_t>(rank) * data[i].size(), DType::kFloat32, kCounts[i],
          [&](int64_t at, std::byte* out) { value_element(DType::kFloat32, rank, i, at, out); },
          fmt::format("all_gather_coalesced, buffer {}, part {}", i, rank));
    }
  }
}

void check_scatters(ProcessGroup& group, ReduceOp op) {
  const std::vector<Bytes> data = values_of_all(group.rank(), group.size());
  const std::vector<Bytes> before = values_of_all(group.rank(), group.size());
  std::vector<Bytes> parts;
  std::vector<BufferPair> pairs;
  for (size_t i = 0; i < data.size(); ++i) {
    parts.emplace_back(static_cast<size_t>(kCounts[i]) * sizeof(float));
    pairs.push_back({data[i].data(), parts[i].data(), kCounts[i]});
  }
  const auto options = options_for(op, group.rank(), op == ReduceOp::kSum);
  group.reduce_scatter_coalesced(pairs, DType::kFloat32, op, options).wait();
  require(data == before, "reduce_scatter_coalesced changes what it is given");
  for (size_t i = 0; i < data.size(); ++i) {
    require_elements(
        parts[i].data(), DType::kFloat32, kCounts[i],
        [&](int64_t at, std::byte* out) {
          reference_element(DType::kFloat32, op, group.size(), i, group.rank() * kCounts[i] + at,
                            out);
        },
        fmt::format("reduce_scatter_coalesced, buffer {}", i));
  }
}

}  // namespace

void check_coalesced(ProcessGroup& group) {
  for (const ReduceOp op : kOps) {
    check_sums(group, op);
    check_scatters(group, op);
    check_gathers(group, op == ReduceOp::kSum);
  }
  group.all_reduce_coalesced({}, DType::kFloat32, ReduceOp::kSum).wait();
  group.all_gather_coalesced({}, DType::kFloat32).wait();
  group.reduce_scatter_coalesced({}, DType::kFloat32, ReduceOp::kSum).wait();
}

}  // namespace lockstep::testing
