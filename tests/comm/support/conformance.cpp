#include "tests/comm/support/conformance.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "lockstep/comm/flight/last_calls.h"
#include "lockstep/comm/native/shm/control.h"
#include "tests/comm/support/buffers.h"
#include "tests/comm/support/values.h"

namespace lockstep::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr int64_t kMiB = 1 << 20;

/// A count and its neighbours; sanitized, the least round one.
std::vector<int64_t> around(int64_t count) {
  if (kSanitized) return {count + 1};
  return {count - 1, count, count + 1};
}

void check_one_all_reduce(ProcessGroup& group, Buffer& buffer, DType dtype, ReduceOp op,
                          int64_t count, bool async, const std::string& where) {
  const auto seed = static_cast<uint64_t>(count);
  fill(buffer.data(), dtype, count, group.rank(), seed);
  group.all_reduce(buffer.data(), count, dtype, op, options_for(op, group.rank(), async)).wait();
  require_elements(
      buffer.data(), dtype, count,
      [&](int64_t i, std::byte* out) { reference_element(dtype, op, group.size(), seed, i, out); },
      fmt::format("all_reduce of {} {} in {}, {}", count, to_string(dtype), where, to_string(op)));
}

/// Counts of 4-byte elements around the border between the inline and the other paths.
std::vector<int64_t> border_counts(int64_t element) {
  const int64_t border = shm::kInlineBytes / element;
  return {0, 1, 3, 17, border - 1, border, border + 1, 3 * border + 5};
}

}  // namespace

std::vector<Layout> one_host_layouts() {
  std::vector<Layout> layouts;
  for (const int size : {1, 2, 3, 4, 5, 7, 8}) {
    if (kSanitized && size > 3) break;
    layouts.push_back({fmt::format("Shm{}", size), {size}});
  }
  return layouts;
}

std::string cause_of(const std::string& what) {
  return what.substr(0, what.find(kLastOperations));
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

void check_all_reduce(ProcessGroup& group) {
  for (const Where where : wheres()) {
    for (const DType dtype : tested_dtypes()) {
      // Not even aligned to elements of more than a byte, which the kernels must support.
      Buffer buffer(group, where, 4 * shm::kInlineBytes, 1);
      for (const ReduceOp op : ops_of(dtype)) {
        check_one_all_reduce(group, buffer, dtype, op, 7, false, to_string(where));
        check_one_all_reduce(group, buffer, dtype, op, shm::kInlineBytes / size_of(dtype) + 77,
                             false, to_string(where));
      }
      if (!has_op(dtype, ReduceOp::kSum)) continue;
      for (const int64_t count : border_counts(size_of(dtype))) {
        check_one_all_reduce(group, buffer, dtype, ReduceOp::kSum, count, count % 2 == 0,
                             to_string(where));
      }
    }
  }
}

void check_large_all_reduce(ProcessGroup& group) {
  for (const Where where : wheres()) {
    Buffer buffer(group, where, (4 << 20) + 4);
    for (const int64_t count : {(1 << 20) - 1, 1 << 20, (1 << 20) + 1}) {
      check_one_all_reduce(group, buffer, DType::kFloat32, ReduceOp::kSum, count, true,
                           to_string(where));
    }
    const int64_t chunk = shm::kChunkBytes;
    for (const int64_t count : {chunk - 1, chunk, chunk + 1, 3 * chunk + 17}) {
      check_one_all_reduce(group, buffer, DType::kUint8, ReduceOp::kMax, count, false,
                           to_string(where));
      check_one_all_reduce(group, buffer, DType::kBFloat16, ReduceOp::kAvg, count / 2, true,
                           to_string(where));
    }
  }
}

void check_all_reduce_of_many_rounds(ProcessGroup& group) {
  constexpr int64_t kCount = (5 << 19) + 17;
  for (const Where where : wheres()) {
    Buffer buffer(group, where, kCount * 4);
    check_one_all_reduce(group, buffer, DType::kFloat32, ReduceOp::kSum, kCount, true,
                         to_string(where));
  }
}

void check_not_numbers(ProcessGroup& group) {
  const int64_t count = group.size() + 2;
  for (const DType dtype : tested_dtypes()) {
    if (!is_floating(dtype)) continue;
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
      std::vector<double> values(static_cast<size_t>(count), group.rank() - 1);
      values[static_cast<size_t>(group.rank())] = std::nan("");
      values[static_cast<size_t>(group.size())] = group.rank() == 0 ? -kInfinity : kInfinity;
      Bytes data = bytes_of(dtype, values);
      group.all_reduce(data.data(), count, dtype, op).wait();
      const std::string what =
          fmt::format("{} of {} with NaN: element ", to_string(op), to_string(dtype));
      for (int64_t i = 0; i < group.size(); ++i) {
        require(std::isnan(element_as_double(dtype, data, i)), what + std::to_string(i));
      }
      const bool least = op == ReduceOp::kMin || group.size() == 1;
      require(element_as_double(dtype, data, count - 2) == (least ? -kInfinity : kInfinity),
              what + "infinite");
      require(element_as_double(dtype, data, count - 1) == (least ? -1 : group.size() - 2),
              what + "of numbers");
    }
  }
}

void check_all_reduce_of_few_bytes(ProcessGroup& group) {
  for (const Where where : wheres()) {
    Buffer buffer(group, where, int64_t{70'001} * 4);
    for (const int64_t count : {0, 1, 65, 5'000, 8'192, 8'193, 40'001, 65'536, 65'537}) {
      check_one_all_reduce(group, buffer, DType::kFloat32, ReduceOp::kSum, count, false,
                           to_string(where));
      check_one_all_reduce(group, buffer, DType::kBFloat16, ReduceOp::kAvg, count, true,
                           to_string(where));
    }
  }
}

void check_one_broadcast(ProcessGroup& group, Buffer& buffer, DType dtype, int64_t count,
                         const std::string& where) {
  const int root = static_cast<int>(count) % group.size();
  fill(buffer.data(), dtype, count, group.rank(), 7);
  group.broadcast(buffer.data(), count, dtype, root).wait();
  require_elements(
      buffer.data(), dtype, count,
      [&](int64_t i, std::byte* out) { value_element(dtype, root, 7, i, out); },
      fmt::format("broadcast of {} {} in {}", count, to_string(dtype), where));
}

void check_broadcast(ProcessGroup& group) {
  for (const Where where : wheres()) {
    Buffer buffer(group, where, int64_t{300'001} * 4);
    for (const DType dtype : tested_dtypes())
      check_one_broadcast(group, buffer, dtype, 17, to_string(where));
    for (const int64_t count : {0, 1, 3001, 300'001})
      check_one_broadcast(group, buffer, DType::kInt32, count, to_string(where));
    for (const int64_t count : around(kMiB))
      check_one_broadcast(group, buffer, DType::kUint8, count, to_string(where));
  }
}

void check_gathered(ProcessGroup& group, const std::byte* out, DType dtype, int64_t count,
                    const std::string& what) {
  for (int rank = 0; rank < group.size(); ++rank) {
    require_elements(
        out + rank * count * size_of(dtype), dtype, count,
        [&](int64_t i, std::byte* to) { value_element(dtype, rank, 9, i, to); },
        fmt::format("{} of {} {}: part {}", what, count, to_string(dtype), rank));
  }
}

void check_one_all_gather(ProcessGroup& group, Buffer& in, Buffer& out, DType dtype, int64_t count,
                          const std::string& where) {
  const int64_t bytes = count * size_of(dtype);
  fill(in.data(), dtype, count, group.rank(), 9);
  group.all_gather(in.data(), out.data(), count, dtype).wait();
  check_gathered(group, out.data(), dtype, count, "all_gather in " + where);
  // In place, with the rest overwritten.
  std::memset(out.data(), 0xff, static_cast<size_t>(bytes * group.size()));
  auto* const place = out.data() + group.rank() * bytes;
  if (count > 0) std::memcpy(place, in.data(), static_cast<size_t>(bytes));
  group.all_gather(place, out.data(), count, dtype).wait();
  check_gathered(group, out.data(), dtype, count, "all_gather in place in " + where);
}

void check_all_gather(ProcessGroup& group) {
  constexpr int64_t kMost = kMiB + 8;
  for (const Where where : wheres()) {
    Buffer in(group, where, kMost);
    Buffer out(group, where, kMost * group.size());
    for (const DType dtype : tested_dtypes())
      check_one_all_gather(group, in, out, dtype, 17, to_string(where));
    for (const int64_t count : {0, 1, 3001, 100'003})
      check_one_all_gather(group, in, out, DType::kInt64, count, to_string(where));
    // A byte more or less misaligns every part but the first.
    for (const int64_t count : around(kMiB))
      check_one_all_gather(group, in, out, DType::kUint8, count, to_string(where));
  }
}

/// `in` holds make_values(dtype, at least size * count, rank, 11).
void check_one_reduce_scatter(ProcessGroup& group, const Buffer& in, Buffer& out, DType dtype,
                              ReduceOp op, int64_t count, const std::string& where) {
  group.reduce_scatter(in.data(), out.data(), count, dtype, op, options_for(op, group.rank()))
      .wait();
  require_elements(
      out.data(), dtype, count,
      [&](int64_t i, std::byte* to) {
        reference_element(dtype, op, group.size(), 11, group.rank() * count + i, to);
      },
      fmt::format("reduce_scatter of {} {} in {}, {}", count, to_string(dtype), where,
                  to_string(op)));
}

void check_reduce_scatter(ProcessGroup& group) {
  constexpr int64_t kMost = kMiB + 8;
  for (const Where where : wheres()) {
    Buffer in(group, where, kMost * group.size());
    Buffer out(group, where, kMost);
    const auto check = [&](DType dtype, ReduceOp op, int64_t count) {
      check_one_reduce_scatter(group, in, out, dtype, op, count, to_string(where));
    };
    const auto fill_in = [&](DType dtype, int64_t count) {
      fill(in.data(), dtype, count * group.size(), group.rank(), 11);
    };
    for (const DType dtype : tested_dtypes()) {
      fill_in(dtype, 17);
      for (const ReduceOp op : ops_of(dtype)) check(dtype, op, 17);
    }
    fill_in(DType::kFloat64, 100'003);
    for (const int64_t count : {0, 1, 3001, 100'003}) {
      check(DType::kFloat64, ReduceOp::kAvg, count);
    }
    fill_in(DType::kFloat32, kMiB / 4 + 1);
    for (const int64_t count : around(kMiB / 4)) {
      check(DType::kFloat32, ReduceOp::kSum, count);
    }
  }
}

void check_point_to_point(ProcessGroup& group) {
  if (group.size() < 2) return;
  const int next = (group.rank() + 1) % group.size();
  const int previous = (group.rank() + group.size() - 1) % group.size();
  for (const int64_t count : {0, 1, 1001, 200'003}) {
    const auto own = make_values(DType::kInt32, count, group.rank(), 13);
    const auto other = make_values(DType::kInt32, count, group.rank(), 14);
    Bytes first(own.size());
    Bytes second(own.size());
    // In both directions at once, and received in another order than sent.
    Work sent[] = {group.send(own.data(), count, DType::kInt32, next, 1),
                   group.send(other.data(), count, DType::kInt32, next, 2)};
    Work received[] = {group.recv(second.data(), count, DType::kInt32, previous, 2),
                       group.recv(first.data(), count, DType::kInt32, previous, 1)};
    // A collective in between does not wait for them.
    group.barrier();
    for (auto& work : received) work.wait();
    for (auto& work : sent) work.wait();
    require(first == make_values(DType::kInt32, count, previous, 13), "recv of tag 1");
    require(second == make_values(DType::kInt32, count, previous, 14), "recv of tag 2");
  }
}

void check_many_async(ProcessGroup& group) {
  constexpr int kNum = 20;
  std::vector<std::vector<float>> data;
  std::vector<Work> works;
  for (int i = 0; i < kNum; ++i) {
    data.emplace_back(static_cast<size_t>(i * 700 + 1), static_cast<float>(group.rank() + i));
  }
  for (auto& one : data) {
    works.push_back(group.all_reduce(one.data(), static_cast<int64_t>(one.size()), DType::kFloat32,
                                     ReduceOp::kSum, {.async = true}));
  }
  float last = 1;
  group.all_reduce(&last, 1, DType::kFloat32, ReduceOp::kSum).wait();
  require(last == static_cast<float>(group.size()), "blocking call after asynchronous ones");
  for (int i = 0; i < kNum; ++i) {
    auto& work = works[static_cast<size_t>(i)];
    require(work.done(), "a blocking call overtook an asynchronous one");
    work.wait();
    const int sum = group.size() * (group.size() - 1) / 2 + i * group.size();
    for (const float value : data[static_cast<size_t>(i)]) {
      require(value == static_cast<float>(sum), fmt::format("{} is not {}", value, sum));
    }
  }
}

void check_allocate(ProcessGroup& group) {
  std::shared_ptr<SharedBuffer> kept;
  for (const int64_t bytes : {0, 1, 4096, 4097, 5'000'000}) {
    const auto buffer = group.allocate(bytes);
    require(buffer->bytes() == bytes, "bytes()");
    require(reinterpret_cast<uintptr_t>(buffer->data()) % 64 == 0, "alignment");
    const auto* const data = static_cast<const unsigned char*>(buffer->data());
    require(std::accumulate(data, data + bytes, 0) == 0, "memory is not zeroed");
    std::memset(buffer->data(), 1, static_cast<size_t>(bytes));
    kept = buffer;
  }
}

void check_subgroups(ProcessGroup& group) {
  // Odd and even ranks, each group in falling order.
  std::vector<int> members;
  for (int rank = group.size() - 1; rank >= 0; --rank) {
    if (rank % 2 == group.rank() % 2) members.push_back(rank);
  }
  for (int round = 0; round < 2; ++round) {
    auto part = group.subgroup(members);
    require(part.size() == static_cast<int>(members.size()), "size of the subgroup");
    for (int rank = 0; rank < part.size(); ++rank) {
      const int world = members[static_cast<size_t>(rank)];
      require(part.world_rank(rank) == world && part.group_rank(world) == rank, "translation");
    }
    require(part.group_rank(group.rank()) == part.rank(), "own rank");
    require(part.group_rank(1 - group.rank() % 2) == -1 || part.size() < 1, "not a member");
    int64_t sum = group.rank();
    part.all_reduce(&sum, 1, DType::kInt64, ReduceOp::kSum).wait();
    require(sum == std::accumulate(members.begin(), members.end(), 0), "sum in the subgroup");
  }
}

void check_everything(ProcessGroup& group) {
  if (!kSanitized) {
    check_all_reduce(group);
    if (promises.shared_memory) check_large_all_reduce(group);
  }
  check_broadcast(group);
  check_all_gather(group);
  check_reduce_scatter(group);
  check_point_to_point(group);
  check_many_async(group);
  check_allocate(group);
  check_subgroups(group);
  check_not_numbers(group);
  check_reduce(group);
  check_exchanges(group);
  check_coalesced(group);
  check_split(group);
  check_grid(group, 2);
  check_places(group);
  check_destroy(group);
}

}  // namespace lockstep::testing
