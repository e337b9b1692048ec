#pragma once
// What goes where between hosts, decided by pure functions of numbers that all ranks know.
//
// H hosts, S slices (hierarchical_plan.h). Rank s of each host carries slice s: S independent
// groups of H carriers, so all links and cores work at once and a host sends what one rank a host
// would.
//
// Every operation runs in rounds of at most kRoundBytes, so that staging memory is bounded and one
// round is summed while the next is on its way. Those of an all_reduce flow: a host sends its
// parts of round k + 1, then the sums of round k, as soon as it has them, and waits for nobody in
// between. Bytes sent per host for n bytes and one tree node
// a host (hosts of equal power-of-two size; with m nodes, m times the first summand):
//   all_reduce, two steps   n(H-1)/H gathered + n(H-1)/H spread: the least possible
//   all_reduce, one step    n(H-1)
//   all_reduce in pairs     n log2(H), or 2 n(H-1)/H by halves: recursive_doubling.h
//   broadcast, one step     n(H-1) by the root's host; two steps: n by the root's host and
//                           n(H-2)/(H-1) by the others
//   all_gather              n(H-1), n: what the host's ranks put in
//   reduce_scatter          n(H-1)/H, n: the whole input
//   barrier                 H-1 messages of 40 bytes
// Direct exchange (everybody with everybody) and not a ring: the sum then follows the fixed tree
// whatever the number of hosts, it takes one or two steps instead of 2(H-1), and the ranks that are
// late are exactly those from whom nothing came. Its price, H-1 connections a carrier and as many
// senders at one port, starts to matter at some hundred hosts.

#include <cstdint>

#include "lockstep/base/rounding.h"
#include "lockstep/comm/spans.h"

namespace lockstep::tcp {

/// Bytes of one round over all slices, but for all_reduce (below), whose rounds are smaller. Large
/// enough that the pause between two rounds (a round trip, some 50 us) is small against its time on
/// a 10 Gbit/s link (3.4 ms), and small enough for staging memory.
inline constexpr int64_t kRoundBytes = int64_t{4} << 20;

/// Rounds of a span of `count` units, `unit_bytes` each.
struct Rounds {
  int64_t count = 0;
  int64_t per_round = 1;
  /// At least one, so that an empty operation meets its peers too.
  int64_t size() const { return count == 0 ? 1 : divide_up(count, per_round); }
  Span operator[](int64_t round) const {
    const int64_t begin = round * per_round;
    return {begin, begin + per_round < count ? begin + per_round : count};
  }
};
Rounds rounds_of(int64_t count, int64_t unit_bytes);

/// Rounds that run into one another in one exchange: there is no pause that would have to be small
/// against them, so they are as small as keeps what is received, summed and sent again in a core's
/// cache.
Rounds flowing_rounds_of(int64_t count, int64_t unit_bytes, int hosts, int slices);
/// What a carrier sends another in such a round.
inline constexpr int64_t kPieceBytes = int64_t{256} << 10;

/// How an operation runs.
struct Choice {
  int slices = 1;         ///< Carriers a host that take part.
  bool one_step = false;  ///< Everything to everybody at once, instead of gather and spread.
};

/// For `bytes` that every host ends up with. One step while the bytes it sends too many cost less
/// than a step's latency: always for two hosts below kOneStepBytes, less for more hosts. Fewer
/// slices where one would be below kMinSliceBytes.
Choice choose(int64_t bytes, int hosts, int slices);
inline constexpr int64_t kOneStepBytes = 64 << 10;
inline constexpr int64_t kMinSliceBytes = 32 << 10;

/// Whether an all_reduce of few bytes runs in pairs (recursive_doubling.h), and how.
enum class Pairs : uint8_t { kNone, kWhole, kHalves };
/// For `bytes` between `hosts`, four or more (with two, everybody's pair is everybody) and a power
/// of two. Whole while log2(H) times the bytes are no more than one step may send.
Pairs choose_pairs(int64_t bytes, int hosts);
/// Below it the number of messages decides, above it what flows (flowing_rounds_of).
inline constexpr int64_t kPairsBytes = int64_t{256} << 10;

}  // namespace lockstep::tcp
