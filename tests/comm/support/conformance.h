#pragma once
// Requirements on every transport, as bodies that a rank runs. They throw on failure, so they work
// for ranks that are threads and for ranks that are processes.

#include <string>
#include <vector>

#include "lockstep/process_group.h"
#include "tests/support/ranks.h"

namespace lockstep::testing {

/// Sanitizers make everything many times slower: then there are fewer ranks, and only some
/// combinations.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Guarantees of the back end under test; the suite omits the others. Set before the ranks start.
struct Promises {
  bool fixed_order = true;    ///< Sums and products have the tree's bits; else they are close.
  bool shared_memory = true;  ///< Memory from allocate() has code paths of its own.
  bool (*carries)(DType dtype) = nullptr;  ///< Null: every type.
};
inline Promises promises;

/// The hosts of the ranks, which determine the transport.
struct Layout {
  std::string name;
  HostLayout hosts;
};
std::vector<Layout> one_host_layouts();  ///< 1-5, 7 and 8 ranks; sanitized, 1-3.

/// The cause of an error: its text without the last operations, which name all ranks.
std::string cause_of(const std::string& what);
inline bool has_name(const std::exception& error, const std::string& name) {
  return cause_of(error.what()).find(name) != std::string::npos;
}

/// Throws std::runtime_error with `what` unless `holds` is true.
void require(bool holds, const std::string& what);

/// Every dtype and op; counts 0, 1, odd, and the border of each path; shared memory and other
/// memory. Expects the bits of the reference tree, and a value close to a float64 sum.
void check_all_reduce(ProcessGroup& group);
/// Counts around 1 MiB of elements and larger than every chunk.
void check_large_all_reduce(ProcessGroup& group);
/// min and max of floats with NaN on one rank, a different one for each element: NaN wins.
void check_not_numbers(ProcessGroup& group);
/// One all_reduce of somewhat over 10 MiB, in the group's memory and in ordinary memory: bit by
/// bit.
void check_all_reduce_of_many_rounds(ProcessGroup& group);
/// Counts around the borders between the algorithms for few bytes between hosts.
void check_all_reduce_of_few_bytes(ProcessGroup& group);
/// The next three: every dtype (and op) at an odd count; counts 0, 1, larger than a chunk, around 1
/// MiB; shared memory and other memory.
void check_broadcast(ProcessGroup& group);
void check_all_gather(ProcessGroup& group);
void check_reduce_scatter(ProcessGroup& group);
void check_point_to_point(ProcessGroup& group);
void check_many_async(ProcessGroup& group);
void check_allocate(ProcessGroup& group);
void check_subgroups(ProcessGroup& group);
/// Every dtype and op at a small count, every path at larger ones, each with another root; data of
/// ranks other than root stays unchanged.
void check_reduce(ProcessGroup& group);
/// gather, scatter, all_to_all, all_gatherv, all_to_allv: every dtype at an odd count; counts 0, 1,
/// small and larger than a chunk; some ranks send nothing.
void check_exchanges(ProcessGroup& group);
/// all_reduce, all_gather and reduce_scatter of many buffers: empty, small and large ones.
void check_coalesced(ProcessGroup& group);
/// By parity with keys that reverse the order; one rank in no group.
void check_split(ProcessGroup& group);
/// Rows and columns of a grid of the ranks, of which the last row may be short. Every rank sums
/// over its row and its column, many times, all in progress together; the groups overlap in one
/// rank each.
void check_grid(ProcessGroup& group, int columns);
/// Ranks on their hosts, also in a group with another order.
void check_places(ProcessGroup& group);
/// Every copy of a group ends with it, its works finish first, and its name may be used again.
void check_destroy(ProcessGroup& group);
/// All of the above; sanitized, without the all_reduces.
void check_everything(ProcessGroup& group);

}  // namespace lockstep::testing
