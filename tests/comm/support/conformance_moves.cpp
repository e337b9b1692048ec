// The part of the suite for reduce and for the collectives that only move data.

#include "lockstep/comm/native/shm/control.h"
#include "tests/comm/support/buffers.h"
#include "tests/comm/support/conformance.h"

namespace lockstep::testing {
namespace {

constexpr uint64_t kSeed = 21;

void check_one_reduce(ProcessGroup& group, Buffer& buffer, DType dtype, ReduceOp op, int64_t count,
                      int root) {
  fill(buffer.data(), dtype, count, group.rank(), kSeed);
  group.reduce(buffer.data(), count, dtype, op, root, options_for(op, group.rank())).wait();
  const bool reduced = group.rank() == root;
  require_elements(
      buffer.data(), dtype, count,
      [&](int64_t i, std::byte* out) {
        if (reduced) return reference_element(dtype, op, group.size(), kSeed, i, out);
        value_element(dtype, group.rank(), kSeed, i, out);
      },
      fmt::format("reduce of {} {}, {}, to {}", count, to_string(dtype), to_string(op), root));
}

/// The data that `from` sends to `to`: the index of the first element, in its make_values(), and
/// the count.
struct Sent {
  int64_t first;
  int64_t count;
};

template <class SentBy>
void check_received(ProcessGroup& group, const std::byte* out, DType dtype, const SentBy& sent,
                    const std::string& what) {
  for (int from = 0; from < group.size(); ++from) {
    const Sent part = sent(from);
    require_elements(
        out, dtype, part.count,
        [&](int64_t i, std::byte* to) { value_element(dtype, from, kSeed, part.first + i, to); },
        fmt::format("{} of {}, part {}", what, to_string(dtype), from));
    out += part.count * size_of(dtype);
  }
}

/// Two buffers that hold `most` bytes for every rank; the input is filled.
struct Ends {
  Ends(ProcessGroup& group, Where where, int64_t most)
      : in(group, where, most * group.size()), out(group, where, most * group.size()) {}
  void prepare(ProcessGroup& group, DType dtype, int64_t count_each) const {
    fill(in.data(), dtype, count_each * group.size(), group.rank(), kSeed);
    const auto bytes = static_cast<size_t>(count_each * group.size() * size_of(dtype));
    if (bytes > 0) std::memset(out.data(), 0x5a, bytes);
  }
  Buffer in;
  Buffer out;
};

void check_even(ProcessGroup& group, const Ends& ends, DType dtype, int64_t count, bool async) {
  const int root = static_cast<int>((count + 1) % group.size());
  const CollectiveOptions options{.async = async};
  std::byte* const in = ends.in.data();
  std::byte* const out = ends.out.data();
  ends.prepare(group, dtype, count);
  group.gather(in, group.rank() == root ? out : nullptr, count, dtype, root, options).wait();
  if (group.rank() == root) {
    check_received(
        group, out, dtype,
        [&](int) {
          return Sent{0, count};
        },
        "gather");
  }
  ends.prepare(group, dtype, count);
  group.scatter(group.rank() == root ? in : nullptr, out, count, dtype, root, options).wait();
  require_elements(
      out, dtype, count,
      [&](int64_t i, std::byte* to) {
        value_element(dtype, root, kSeed, group.rank() * count + i, to);
      },
      "scatter");
  ends.prepare(group, dtype, count);
  group.all_to_all(in, out, count, dtype, options).wait();
  check_received(
      group, out, dtype,
      [&](int) {
        return Sent{group.rank() * count, count};
      },
      "all_to_all");
}

/// Every third pair exchanges nothing.
int64_t uneven(int from, int to, int64_t unit) {
  return (from + 2 * to) % 3 * unit;
}

void check_uneven(ProcessGroup& group, const Ends& ends, DType dtype, int64_t unit, bool async) {
  const int rank = group.rank();
  const CollectiveOptions options{.async = async};
  std::vector<int64_t> counts;
  std::vector<int64_t> sends;
  std::vector<int64_t> receives;
  for (int other = 0; other < group.size(); ++other) {
    counts.push_back(uneven(other, 1, unit));
    sends.push_back(uneven(rank, other, unit));
    receives.push_back(uneven(other, rank, unit));
  }
  ends.prepare(group, dtype, 2 * unit);
  group.all_gatherv(ends.in.data(), ends.out.data(), counts, dtype, options).wait();
  check_received(
      group, ends.out.data(), dtype,
      [&](int from) {
        return Sent{0, counts[static_cast<size_t>(from)]};
      },
      "all_gatherv");
  ends.prepare(group, dtype, 2 * unit);
  group.all_to_allv(ends.in.data(), sends, ends.out.data(), receives, dtype, options).wait();
  check_received(
      group, ends.out.data(), dtype,
      [&](int from) {
        int64_t first = 0;
        for (int to = 0; to < rank; ++to) first += uneven(from, to, unit);
        return Sent{first, receives[static_cast<size_t>(from)]};
      },
      "all_to_allv");
}

/// A rank's own piece at its place in the larger buffer.
void check_in_place(ProcessGroup& group, const Ends& ends, int64_t count) {
  constexpr DType kType = DType::kInt32;
  const int root = group.size() - 1;
  std::byte* const all = ends.out.data();
  std::byte* const own = all + group.rank() * count * 4;
  fill(own, kType, count, group.rank(), kSeed);
  group.gather(own, all, count, kType, root).wait();
  if (group.rank() == root) {
    check_received(
        group, all, kType,
        [&](int) {
          return Sent{0, count};
        },
        "gather in place");
  }
  fill(all, kType, count * group.size(), group.rank(), kSeed);
  group.scatter(all, own, count, kType, root).wait();
  require_elements(
      own, kType, count,
      [&](int64_t i, std::byte* to) {
        value_element(kType, root, kSeed, group.rank() * count + i, to);
      },
      "scatter in place");
}

}  // namespace

void check_reduce(ProcessGroup& group) {
  for (const Where where : wheres()) {
    Buffer buffer(group, where, int64_t{100'001} * 4, 1);
    int root = 0;
    const auto check = [&](DType dtype, ReduceOp op, int64_t count) {
      check_one_reduce(group, buffer, dtype, op, count, root++ % group.size());
    };
    for (const DType dtype : tested_dtypes()) {
      if (has_op(dtype, ReduceOp::kSum)) check(dtype, ReduceOp::kSum, 7);
      if (where != Where::kUser) continue;
      for (const ReduceOp op : ops_of(dtype)) check(dtype, op, 301);
    }
    const int64_t border = shm::kInlineBytes / 4;
    for (const int64_t count : {int64_t{0}, int64_t{1}, border, border + 1, int64_t{100'001}}) {
      check(DType::kFloat32, ReduceOp::kAvg, count);
    }
    check(DType::kFloat32, ReduceOp::kPremulSum, 70'003);
  }
}

void check_exchanges(ProcessGroup& group) {
  constexpr int64_t kMost = 40'003;
  for (const Where where : wheres()) {
    const Ends ends(group, where, 8 * kMost);
    for (const DType dtype : tested_dtypes()) {
      check_even(group, ends, dtype, 17, false);
      check_uneven(group, ends, dtype, 17, true);
    }
    for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{3001}, kMost}) {
      check_even(group, ends, DType::kInt64, count, count % 2 == 0);
      check_uneven(group, ends, DType::kFloat32, count, count % 2 == 0);
    }
    for (const int64_t count : {5, 70'001}) check_in_place(group, ends, count);
  }
}

}  // namespace lockstep::testing
