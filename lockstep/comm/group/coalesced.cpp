// The collectives of ProcessGroup on many buffers at once: argument checks, packing, and the calls
// of the back end.

#include "lockstep/comm/group/coalesced.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "lockstep/comm/arguments.h"
#include "lockstep/comm/bytes.h"
#include "lockstep/comm/group/group_core.h"
#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/comm/scaled.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"

namespace lockstep::inline internal {
namespace {

/// Numbers and sizes of a rank's buffers.
struct Outline {
  int64_t buffers = 0;
  int64_t elements = 0;
  int64_t hash = 0;  // of the counts
  bool operator==(const Outline&) const = default;
};

/// Of Buffers or BufferPairs.
template <class Buffers>
std::vector<int64_t> counts_of(const Buffers& buffers) {
  std::vector<int64_t> counts;
  for (const auto& buffer : buffers) counts.push_back(buffer.count);
  return counts;
}

Outline outline_of(const std::vector<int64_t>& counts) {
  return {std::ssize(counts), std::accumulate(counts.begin(), counts.end(), int64_t{0}),
          static_cast<int64_t>(fnv1a(std::as_bytes(std::span(counts))))};
}

std::string describe(const Outline& outline) {
  return fmt::format("{} buffers of {} elements in all (counts hash {:x})", outline.buffers,
                     outline.elements, static_cast<uint64_t>(outline.hash) >> 32);
}

/// For the calls after the first one of a collective: each begins when it is made.
Waiting later(const Waiting& waiting) {
  Waiting own = waiting;
  own.began = {};
  return own;
}

/// Throws the same error on every rank unless all ranks have the same buffers.
void agree(const char* call, GroupImpl& impl, const GroupSpec& spec, const Outline& own,
           const Waiting& waiting) {
  std::vector<Outline> all(static_cast<size_t>(spec.size));
  constexpr int64_t kFields = sizeof(Outline) / sizeof(int64_t);
  impl.all_gather(&own, all.data(), kFields, DType::kInt64, waiting);
  for (int rank = 1; rank < spec.size; ++rank) {
    const Outline& other = all[static_cast<size_t>(rank)];
    if (other == all[0]) continue;
    throw Error(ErrorCode::kMismatch,
                fmt::format("{}: {} gave {}, {} gave {}", call, spec.rank_name(0), describe(all[0]),
                            spec.rank_name(rank), describe(other)));
  }
}

using Memory = std::unique_ptr<std::byte[]>;

/// Room for the largest pack of several buffers.
Memory room_for(const std::vector<Pack>& packs, int64_t element_bytes) {
  int64_t most = 0;
  for (const Pack& pack : packs) {
    if (pack.last - pack.first > 1) most = std::max(most, pack.count * element_bytes);
  }
  return std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(most));
}

/// Calls copy(in the pack, in a buffer's larger memory, index, bytes) for each part of each buffer
/// of the pack. In the pack the parts of a rank are contiguous.
template <class Buffers, class Copy>
void each_part(const Pack& pack, const Buffers& buffers, int64_t element_bytes, int ranks,
               std::byte* together, const Copy& copy) {
  for (int rank = 0; rank < ranks; ++rank) {
    for (size_t i = pack.first; i < pack.last; ++i) {
      const int64_t bytes = buffers[i].count * element_bytes;
      if (bytes > 0) copy(together, buffers[i], rank * bytes, static_cast<size_t>(bytes));
      together += bytes;
    }
  }
}

/// Buffers of which one side has a part for each rank, after agreement on their sizes.
struct PackedPairs {
  PackedPairs(const char* call, GroupImpl& impl, const GroupSpec& spec,
              std::span<const BufferPair> pairs, int64_t element_bytes, const Waiting& waiting) {
    const auto counts = counts_of(pairs);
    agree(call, impl, spec, outline_of(counts), waiting);
    packs = plan_packs(counts, element_bytes * spec.size);
    own = room_for(packs, element_bytes);
    all = room_for(packs, element_bytes * spec.size);
  }
  std::vector<Pack> packs;
  Memory own;
  Memory all;
};

}  // namespace

std::vector<Pack> plan_packs(std::span<const int64_t> counts, int64_t element_bytes) {
  std::vector<Pack> packs;
  bool open = false;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t bytes = counts[i] * element_bytes;
    const bool small = bytes < kPackedBelowBytes;
    if (open && small && packs.back().count * element_bytes + bytes <= kPackBytes) {
      packs.back().last = i + 1;
      packs.back().count += counts[i];
    } else {
      packs.push_back({i, i + 1, counts[i]});
      open = small;
    }
  }
  return packs;
}

void all_reduce_coalesced(GroupImpl& impl, const GroupSpec& spec, std::span<const Buffer> buffers,
                          DType dtype, ReduceOp op, double factor, const Waiting& waiting) {
  const auto counts = counts_of(buffers);
  agree("all_reduce_coalesced", impl, spec, outline_of(counts), waiting);
  const Waiting rest = later(waiting);
  const int64_t size = size_of(dtype);
  const std::vector<Pack> packs = plan_packs(counts, size);
  const Memory together = room_for(packs, size);
  const auto sum = [&](void* data, int64_t count) {
    if (factor != 1) scale(data, data, count, dtype, factor);
    impl.all_reduce(data, count, dtype, op, rest);
  };
  for (const Pack& pack : packs) {
    if (pack.count == 0) continue;
    if (pack.last - pack.first == 1) {
      sum(buffers[pack.first].data, pack.count);
      continue;
    }
    each_part(pack, buffers, size, 1, together.get(),
              [](std::byte* place, const Buffer& buffer, int64_t, size_t bytes) {
                std::memcpy(place, buffer.data, bytes);
              });
    sum(together.get(), pack.count);
    each_part(pack, buffers, size, 1, together.get(),
              [](const std::byte* place, const Buffer& buffer, int64_t, size_t bytes) {
                std::memcpy(buffer.data, place, bytes);
              });
  }
}

void all_gather_coalesced(GroupImpl& impl, const GroupSpec& spec, std::span<const BufferPair> pairs,
                          DType dtype, const Waiting& waiting) {
  const int64_t size = size_of(dtype);
  const PackedPairs packed("all_gather_coalesced", impl, spec, pairs, size, waiting);
  const Waiting rest = later(waiting);
  for (const Pack& pack : packed.packs) {
    if (pack.count == 0) continue;
    if (pack.last - pack.first == 1) {
      const BufferPair& alone = pairs[pack.first];
      impl.all_gather(alone.in, alone.out, alone.count, dtype, rest);
      continue;
    }
    each_part(pack, pairs, size, 1, packed.own.get(),
              [](std::byte* place, const BufferPair& pair, int64_t, size_t bytes) {
                std::memcpy(place, pair.in, bytes);
              });
    impl.all_gather(packed.own.get(), packed.all.get(), pack.count, dtype, rest);
    each_part(pack, pairs, size, spec.size, packed.all.get(),
              [](const std::byte* place, const BufferPair& pair, int64_t at, size_t bytes) {
                std::memcpy(static_cast<std::byte*>(pair.out) + at, place, bytes);
              });
  }
}

void reduce_scatter_coalesced(GroupImpl& impl, const GroupSpec& spec,
                              std::span<const BufferPair> pairs, DType dtype, ReduceOp op,
                              double factor, const Waiting& waiting) {
  const int64_t size = size_of(dtype);
  const PackedPairs packed("reduce_scatter_coalesced", impl, spec, pairs, size, waiting);
  const Waiting rest = later(waiting);
  for (const Pack& pack : packed.packs) {
    if (pack.count == 0) continue;
    const int64_t count_of_all = pack.count * spec.size;
    if (pack.last - pack.first == 1) {
      const BufferPair& alone = pairs[pack.first];
      const Scaled scaled(alone.in, count_of_all, dtype, factor);
      impl.reduce_scatter(scaled.data(), alone.out, alone.count, dtype, op, rest);
      continue;
    }
    each_part(pack, pairs, size, spec.size, packed.all.get(),
              [](std::byte* place, const BufferPair& pair, int64_t at, size_t bytes) {
                std::memcpy(place, static_cast<const std::byte*>(pair.in) + at, bytes);
              });
    if (factor != 1) scale(packed.all.get(), packed.all.get(), count_of_all, dtype, factor);
    impl.reduce_scatter(packed.all.get(), packed.own.get(), pack.count, dtype, op, rest);
    each_part(pack, pairs, size, 1, packed.own.get(),
              [](const std::byte* place, const BufferPair& pair, int64_t, size_t bytes) {
                std::memcpy(pair.out, place, bytes);
              });
  }
}

}  // namespace lockstep::inline internal

namespace lockstep {

Work ProcessGroup::all_reduce_coalesced(std::span<const Buffer> buffers, DType dtype, ReduceOp op,
                                        const CollectiveOptions& options, CallSite site) {
  check_memory("all_reduce_coalesced", options, "");
  int64_t bytes = 0;
  for (const auto& buffer : buffers) {
    check_buffer("all_reduce_coalesced", buffer.data, buffer.count, dtype);
    bytes += buffer.count * size_of(dtype);
  }
  check_op("all_reduce_coalesced", dtype, op, options);
  return core_->collective(
      "all_reduce_coalesced", bytes, options, site,
      [copies = std::vector<Buffer>(buffers.begin(), buffers.end()), dtype, op,
       factor = options.factor, &spec = core_->spec()](GroupImpl& impl, const Waiting& waiting) {
        lockstep::all_reduce_coalesced(impl, spec, copies, dtype, op, factor, waiting);
      });
}

Work ProcessGroup::all_gather_coalesced(std::span<const BufferPair> pairs, DType dtype,
                                        const CollectiveOptions& options, CallSite site) {
  check_memory("all_gather_coalesced", options, "");
  int64_t bytes = 0;
  for (const auto& pair : pairs) {
    check_buffer("all_gather_coalesced", pair.in, pair.count, dtype, size());
    check_buffer("all_gather_coalesced", pair.out, pair.count, dtype, size());
    bytes += pair.count * size_of(dtype) * size();
  }
  return core_->collective("all_gather_coalesced", bytes, options, site,
                           [copies = std::vector<BufferPair>(pairs.begin(), pairs.end()), dtype,
                            &spec = core_->spec()](GroupImpl& impl, const Waiting& waiting) {
                             lockstep::all_gather_coalesced(impl, spec, copies, dtype, waiting);
                           });
}

Work ProcessGroup::reduce_scatter_coalesced(std::span<const BufferPair> pairs, DType dtype,
                                            ReduceOp op, const CollectiveOptions& options,
                                            CallSite site) {
  check_memory("reduce_scatter_coalesced", options, "");
  int64_t bytes = 0;
  for (const auto& pair : pairs) {
    check_buffer("reduce_scatter_coalesced", pair.in, pair.count, dtype, size());
    check_buffer("reduce_scatter_coalesced", pair.out, pair.count, dtype, size());
    bytes += pair.count * size_of(dtype) * size();
  }
  check_op("reduce_scatter_coalesced", dtype, op, options);
  return core_->collective(
      "reduce_scatter_coalesced", bytes, options, site,
      [copies = std::vector<BufferPair>(pairs.begin(), pairs.end()), dtype, op,
       factor = options.factor, &spec = core_->spec()](GroupImpl& impl, const Waiting& waiting) {
        lockstep::reduce_scatter_coalesced(impl, spec, copies, dtype, op, factor, waiting);
      });
}

}  // namespace lockstep
