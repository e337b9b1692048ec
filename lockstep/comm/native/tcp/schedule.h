#pragma once
// The transfers between hosts, decided by pure functions of numbers that all ranks have.
//
// H hosts, S slices (hierarchical_plan.h). Rank s of each host carries slice s: S independent
// groups of H carriers. So all links and cores work at once, and a host sends as much as with one
// rank per host.
//
// Every operation runs in rounds of at most kRoundBytes: staging memory is bounded, and one round
// is summed while the next is on its way. Rounds of an all_reduce flow: a host sends its parts of
// round k + 1, then the sums of round k when they are ready. Bytes sent per host for n bytes and
// one tree node per host, with hosts of equal power-of-two size. With m nodes, the first summand
// counts m times:
//   all_reduce, two steps   n(H-1)/H gathered + n(H-1)/H spread: the least possible
//   all_reduce, one step    n(H-1)
//   all_reduce in pairs     n log2(H), or 2 n(H-1)/H by halves: recursive_doubling.h
//   broadcast, one step     n(H-1) by the root's host; two steps: n by the root's host and
//                           n(H-2)/(H-1) by the others
//   all_gather              n(H-1), n: what the host's ranks put in
//   reduce_scatter          n(H-1)/H, n: the whole input
//   barrier                 H-1 messages of 40 bytes
// Direct exchange (every carrier with every other) is used instead of a ring. The sum then follows
// the fixed tree whatever the number of hosts. It takes one or two steps instead of 2(H-1), and the
// late ranks are exactly those that sent nothing. Its price is H-1 connections per carrier and as
// many senders at one port, which matters from some hundred hosts on.

#include <cstdint>

#include "lockstep/base/rounding.h"
#include "lockstep/comm/spans.h"

namespace lockstep::tcp {

/// Bytes of one round over all slices, except for all_reduce (below), whose rounds are smaller.
/// Large enough that the pause between rounds (a round trip, some 50 us) is small against a round
/// on a 10 Gbit/s link (3.4 ms). Small enough for staging memory.
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

/// Rounds that follow one another in one exchange. There is no pause to amortize, so they are small
/// enough that received, summed and resent data stays in a core's cache.
Rounds flowing_rounds_of(int64_t count, int64_t unit_bytes, int hosts, int slices);
/// The data that a carrier sends another in such a round.
inline constexpr int64_t kPieceBytes = int64_t{256} << 10;

/// The form of an operation.
struct Choice {
  int slices = 1;         ///< Carriers per host that take part.
  bool one_step = false;  ///< All data to all hosts at once, instead of gather and spread.
};

/// The choice for `bytes` that every host ends up with. One step is chosen while its extra bytes
/// cost less than a step's latency: always for two hosts below kOneStepBytes, less for more hosts.
/// Fewer slices are used if one would be below kMinSliceBytes.
Choice choose(int64_t bytes, int hosts, int slices);
inline constexpr int64_t kOneStepBytes = 64 << 10;
inline constexpr int64_t kMinSliceBytes = 32 << 10;

/// The use of pairs for an all_reduce of few bytes (recursive_doubling.h).
enum class Pairs : uint8_t { kNone, kWhole, kHalves };
/// For `bytes` between `hosts`, four or more (with two, one pair is all) and a power of two. Whole
/// while log2(H) times the bytes do not exceed the limit of one step.
Pairs choose_pairs(int64_t bytes, int hosts);
/// Below it the number of messages decides, above it the flow of rounds (flowing_rounds_of).
inline constexpr int64_t kPairsBytes = int64_t{256} << 10;

}  // namespace lockstep::tcp
