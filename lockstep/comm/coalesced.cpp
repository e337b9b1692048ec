#include "lockstep/comm/coalesced.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/comm/fnv.h"

namespace lockstep {
namespace {

/// What a rank's buffers look like.
struct Outline {
  int64_t buffers = 0;
  int64_t elements = 0;
  int64_t hash = 0;  // of the counts
  bool operator==(const Outline&) const = default;
};

Outline outline_of(std::span<const Buffer> buffers) {
  Outline outline;
  std::vector<int64_t> counts;
  for (const auto& buffer : buffers) {
    ++outline.buffers;
    outline.elements += buffer.count;
    counts.push_back(buffer.count);
  }
  outline.hash = static_cast<int64_t>(fnv1a(std::as_bytes(std::span(counts))));
  return outline;
}

std::string describe(const Outline& outline) {
  return fmt::format("{} buffers of {} elements in all (counts hash {:x})", outline.buffers,
                     outline.elements, static_cast<uint64_t>(outline.hash) >> 32);
}

/// Throws the same on every rank unless all have the same buffers.
void agree(GroupImpl& impl, const GroupSpec& spec, const Outline& own, const Waiting& waiting) {
  std::vector<Outline> all(static_cast<size_t>(spec.size));
  constexpr int64_t kFields = sizeof(Outline) / sizeof(int64_t);
  impl.all_gather(&own, all.data(), kFields, DType::kInt64, waiting);
  for (int rank = 1; rank < spec.size; ++rank) {
    const Outline& other = all[static_cast<size_t>(rank)];
    if (other == all[0]) continue;
    throw Error(ErrorCode::kMismatch,
                fmt::format("all_reduce_coalesced: {} gave {}, {} gave {}", spec.rank_name(0),
                            describe(all[0]), spec.rank_name(rank), describe(other)));
  }
}

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
                          DType dtype, ReduceOp op, const Waiting& waiting) {
  agree(impl, spec, outline_of(buffers), waiting);
  std::vector<int64_t> counts;
  for (const auto& buffer : buffers) counts.push_back(buffer.count);
  const int64_t size = size_of(dtype);
  const std::vector<Pack> packs = plan_packs(counts, size);
  int64_t most = 0;
  for (const Pack& pack : packs) {
    if (pack.last - pack.first > 1) most = std::max(most, pack.count * size);
  }
  const auto together = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(most));
  for (const Pack& pack : packs) {
    if (pack.count == 0) continue;
    if (pack.last - pack.first == 1) {
      impl.all_reduce(buffers[pack.first].data, pack.count, dtype, op, waiting);
      continue;
    }
    const auto each = [&](const auto& copy) {
      std::byte* place = together.get();
      for (size_t i = pack.first; i < pack.last; ++i) {
        const auto bytes = static_cast<size_t>(buffers[i].count * size);
        if (bytes > 0) copy(place, buffers[i].data, bytes);
        place += bytes;
      }
    };
    each([](std::byte* place, const void* data, size_t bytes) { std::memcpy(place, data, bytes); });
    impl.all_reduce(together.get(), pack.count, dtype, op, waiting);
    each([](const std::byte* place, void* data, size_t bytes) { std::memcpy(data, place, bytes); });
  }
}

}  // namespace lockstep
