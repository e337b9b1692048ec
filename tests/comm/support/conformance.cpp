#include "tests/comm/support/conformance.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "lockstep/comm/native/shm/control.h"
#include "tests/comm/support/values.h"

namespace lockstep::testing {
namespace {

constexpr DType kDTypes[] = {DType::kUint8,    DType::kInt32,   DType::kInt64,  DType::kFloat16,
                             DType::kBFloat16, DType::kFloat32, DType::kFloat64};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMin, ReduceOp::kMax};

/// Where a rank keeps the data of a call.
enum class Where { kOwn, kUser, kMixed };
constexpr Where kWheres[] = {Where::kOwn, Where::kUser, Where::kMixed};

std::string to_string(Where where) {
  return where == Where::kOwn ? "own memory" : where == Where::kUser ? "user memory" : "mixed";
}

/// `bytes` at a place that starts unaligned by `skew` bytes.
class Buffer {
 public:
  Buffer(ProcessGroup& group, Where where, int64_t bytes, int64_t skew = 0)
      : user_(static_cast<size_t>(bytes + skew)) {
    if (where != Where::kUser) shared_ = group.allocate(bytes + skew);
    const bool own = where == Where::kOwn || (where == Where::kMixed && group.rank() % 2 == 0);
    data_ = (own ? static_cast<std::byte*>(shared_->data()) : user_.data()) + skew;
  }
  std::byte* data() const { return data_; }

 private:
  Bytes user_;
  std::shared_ptr<SharedBuffer> shared_;
  std::byte* data_;
};

std::vector<Bytes> all_values(int size, DType dtype, int64_t count, uint64_t seed) {
  std::vector<Bytes> values;
  for (int rank = 0; rank < size; ++rank) values.push_back(make_values(dtype, count, rank, seed));
  return values;
}

void fill(std::byte* to, const Bytes& values) {
  if (!values.empty()) std::memcpy(to, values.data(), values.size());
}

void require_bits(const std::byte* got, const Bytes& want, DType dtype, const std::string& what) {
  const int64_t size = size_of(dtype);
  for (int64_t i = 0; i * size < static_cast<int64_t>(want.size()); ++i) {
    if (std::memcmp(got + i * size, want.data() + i * size, static_cast<size_t>(size)) == 0) {
      continue;
    }
    const Bytes bytes(got, got + want.size());
    throw std::runtime_error(fmt::format("{}: element {} is {}, not {}", what, i,
                                         element_as_double(dtype, bytes, i),
                                         element_as_double(dtype, want, i)));
  }
}

/// The reference tree itself against a plain float64 sum: 8 ranks of values up to 24.
void require_near(const Bytes& result, DType dtype, ReduceOp op, const std::vector<Bytes>& ins) {
  const bool integer = dtype == DType::kUint8 || dtype == DType::kInt32 || dtype == DType::kInt64;
  if (integer && (op == ReduceOp::kSum || op == ReduceOp::kAvg)) return;  // they wrap
  const double unit = dtype == DType::kBFloat16  ? 0x1p-7
                      : dtype == DType::kFloat16 ? 0x1p-10
                                                 : 0x1p-22;
  const int64_t count = static_cast<int64_t>(result.size()) / size_of(dtype);
  for (int64_t i = 0; i < std::min<int64_t>(count, 100); ++i) {
    const double want = reference_in_double(dtype, op, ins, i);
    const double got = element_as_double(dtype, result, i);
    require(std::fabs(got - want) <= unit * 200, fmt::format("{} is not near {}", got, want));
  }
}

void check_one_all_reduce(ProcessGroup& group, Where where, DType dtype, ReduceOp op, int64_t count,
                          bool async) {
  const int64_t skew = dtype == DType::kUint8 ? 1 : size_of(dtype);
  const auto ins = all_values(group.size(), dtype, count, static_cast<uint64_t>(count));
  Buffer buffer(group, where, count * size_of(dtype), skew);
  fill(buffer.data(), ins[static_cast<size_t>(group.rank())]);
  group.all_reduce(buffer.data(), count, dtype, op, {.async = async}).wait();
  const Bytes want = reference(dtype, op, ins);
  require_near(want, dtype, op, ins);
  require_bits(buffer.data(), want, dtype,
               fmt::format("all_reduce of {} {} in {}, {}", count, to_string(dtype),
                           to_string(where), to_string(op)));
}

/// Counts of 4-byte elements around the border between the inline and the other paths.
std::vector<int64_t> border_counts(int64_t element) {
  const int64_t border = shm::kInlineBytes / element;
  return {0, 1, 3, 17, border - 1, border, border + 1, 3 * border + 5};
}

}  // namespace

std::vector<Layout> one_host_layouts() {
  std::vector<Layout> layouts;
  for (const int size : {1, 2, 3}) {
    layouts.push_back({fmt::format("Shm{}", size), {size}});
  }
  return layouts;
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

void check_all_reduce(ProcessGroup& group) {
  for (const DType dtype : kDTypes) {
    for (const ReduceOp op : kOps) {
      for (const Where where : kWheres) {
        check_one_all_reduce(group, where, dtype, op, 7, false);
        check_one_all_reduce(group, where, dtype, op, 5001, false);
      }
    }
    for (const int64_t count : border_counts(size_of(dtype))) {
      for (const Where where : kWheres) {
        check_one_all_reduce(group, where, dtype, ReduceOp::kSum, count, count % 2 == 0);
      }
    }
  }
}

void check_large_all_reduce(ProcessGroup& group) {
  for (const Where where : kWheres) {
    for (const int64_t count : {(1 << 20) - 1, 1 << 20, (1 << 20) + 1}) {
      check_one_all_reduce(group, where, DType::kFloat32, ReduceOp::kSum, count, true);
    }
    const int64_t chunk = shm::kChunkBytes;
    for (const int64_t count : {chunk - 1, chunk, chunk + 1, 3 * chunk + 17}) {
      check_one_all_reduce(group, where, DType::kUint8, ReduceOp::kMax, count, false);
      check_one_all_reduce(group, where, DType::kBFloat16, ReduceOp::kAvg, count / 2, true);
    }
  }
}

void check_broadcast(ProcessGroup& group) {
  for (const Where where : kWheres) {
    for (const int64_t count : {0, 1, 17, 3001, 300'001}) {
      const int root = static_cast<int>(count) % group.size();
      const auto values = all_values(group.size(), DType::kInt32, count, 7);
      Buffer buffer(group, where, count * 4);
      fill(buffer.data(), values[static_cast<size_t>(group.rank())]);
      group.broadcast(buffer.data(), count, DType::kInt32, root).wait();
      require_bits(buffer.data(), values[static_cast<size_t>(root)], DType::kInt32,
                   fmt::format("broadcast of {} in {}", count, to_string(where)));
    }
  }
}

void check_all_gather(ProcessGroup& group) {
  for (const Where where : kWheres) {
    for (const int64_t count : {0, 1, 17, 3001, 100'003}) {
      const auto values = all_values(group.size(), DType::kInt64, count, 9);
      const auto& own = values[static_cast<size_t>(group.rank())];
      Buffer in(group, where, count * 8);
      Buffer out(group, where, count * 8 * group.size());
      auto* const place = out.data() + group.rank() * count * 8;
      fill(in.data(), own);
      group.all_gather(in.data(), out.data(), count, DType::kInt64).wait();
      Bytes want;
      for (const auto& one : values) want.insert(want.end(), one.begin(), one.end());
      require_bits(out.data(), want, DType::kInt64,
                   fmt::format("all_gather of {} in {}", count, to_string(where)));
      // In its own place, with the rest wiped out.
      std::memset(out.data(), 0xff, want.size());
      fill(place, own);
      group.all_gather(place, out.data(), count, DType::kInt64).wait();
      require_bits(out.data(), want, DType::kInt64,
                   fmt::format("all_gather of {} in place in {}", count, to_string(where)));
    }
  }
}

void check_reduce_scatter(ProcessGroup& group) {
  for (const Where where : kWheres) {
    for (const int64_t count : {0, 1, 17, 3001, 100'003}) {
      const DType dtype = count % 2 == 0 ? DType::kFloat64 : DType::kFloat32;
      const int64_t bytes = count * size_of(dtype);
      const auto values = all_values(group.size(), dtype, count * group.size(), 11);
      Buffer in(group, where, bytes * group.size());
      Buffer out(group, where, bytes);
      fill(in.data(), values[static_cast<size_t>(group.rank())]);
      group.reduce_scatter(in.data(), out.data(), count, dtype, ReduceOp::kAvg).wait();
      const Bytes all = reference(dtype, ReduceOp::kAvg, values);
      const auto begin = all.begin() + group.rank() * bytes;
      require_bits(out.data(), Bytes(begin, begin + bytes), dtype,
                   fmt::format("reduce_scatter of {} in {}", count, to_string(where)));
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
    // Both ways around at once, and taken in the other order than sent.
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
  check_all_reduce(group);
  check_large_all_reduce(group);
  check_broadcast(group);
  check_all_gather(group);
  check_reduce_scatter(group);
  check_point_to_point(group);
  check_many_async(group);
  check_allocate(group);
  check_subgroups(group);
}

}  // namespace lockstep::testing
