#pragma once
// What every transport must do, as bodies that a rank runs: they throw when it does not, so that
// they serve ranks that are threads and ranks that are processes.

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/process_group.h"
#include "tests/support/ranks.h"

namespace lockstep::testing {

/// Sanitizers make everything many times slower: then fewer ranks, and only some combinations.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// What the back end under test promises; what it does not is left out of the suite. Set before the
/// ranks start.
struct Promises {
  bool fixed_order = true;  ///< Sums and products have the bits of the tree; else they are near it.
  bool shared_memory = true;  ///< Memory from allocate() takes other paths than any other.
  bool (*carries)(DType dtype) = nullptr;  ///< Null: every type.
};
inline Promises promises;

/// Where the ranks are; the transport follows from it.
struct Layout {
  std::string name;
  HostLayout hosts;
};
std::vector<Layout> one_host_layouts();  ///< 1-5, 7 and 8 ranks; sanitized, 1-3.

/// What caused an error: its text without what every rank did last, which names all ranks.
std::string cause_of(const std::string& what);
inline bool has_name(const std::exception& error, const std::string& name) {
  return cause_of(error.what()).find(name) != std::string::npos;
}

/// Throws std::runtime_error with `what` unless `holds`.
void require(bool holds, const std::string& what);

/// Every dtype and op, counts 0, 1, odd, and the border of each path, own memory and other memory:
/// bits of the reference tree, and near a float64 sum.
void check_all_reduce(ProcessGroup& group);
/// Counts around 1 MiB of elements and larger than every chunk.
void check_large_all_reduce(ProcessGroup& group);
/// min and max of floats where one rank has no number, each rank elsewhere: NaN wins.
void check_not_numbers(ProcessGroup& group);
/// One of 10 MiB and a bit, in the group's memory and in ordinary memory: bit by bit.
void check_all_reduce_of_many_rounds(ProcessGroup& group);
/// Counts around the borders between the ways in which few bytes pass between hosts.
void check_all_reduce_of_few_bytes(ProcessGroup& group);
/// The next three: every dtype (and op) at an odd count; counts 0, 1, larger than a chunk and
/// around 1 MiB; own memory and other memory.
void check_broadcast(ProcessGroup& group);
void check_all_gather(ProcessGroup& group);
void check_reduce_scatter(ProcessGroup& group);
void check_point_to_point(ProcessGroup& group);
void check_many_async(ProcessGroup& group);
void check_allocate(ProcessGroup& group);
void check_subgroups(ProcessGroup& group);
/// Every dtype and op at a small count, every path at larger ones, each with another root; the data
/// of other ranks than root stays.
void check_reduce(ProcessGroup& group);
/// gather, scatter, all_to_all, all_gatherv, all_to_allv: every dtype at an odd count; counts 0, 1,
/// small and larger than a chunk; some ranks give nothing.
void check_exchanges(ProcessGroup& group);
/// all_reduce, all_gather and reduce_scatter of many buffers: empty, small and large ones.
void check_coalesced(ProcessGroup& group);
/// By parity with keys that turn the order around; one rank in no group.
void check_split(ProcessGroup& group);
/// Rows and columns of a grid of the ranks, of which the last row may be short: every rank sums
/// over its row and its column, many times, all under way together; the groups overlap in one rank
/// each.
void check_grid(ProcessGroup& group, int columns);
/// Places on the hosts, also in a group of another order.
void check_places(ProcessGroup& group);
/// Every copy of a group ends with it, its works are done first, and its name may be used again.
void check_destroy(ProcessGroup& group);
/// All of the above; sanitized, without the all_reduces.
void check_everything(ProcessGroup& group);

}  // namespace lockstep::testing
