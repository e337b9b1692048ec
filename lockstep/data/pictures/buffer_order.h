#pragma once
// The order of an epoch of shards, for storage that is slow to read at random places.

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::inline internal {

/// A permutation of 0 .. n-1. The shards change places, and their samples follow one another into a
/// buffer of `buffer` samples. Each place of the epoch takes one of these at random, and the next
/// sample takes its room.
///
/// So a sample comes at most buffer - 1 places before its turn. One in 148 comes more than four
/// buffers behind it. With a buffer of 1 only the shards change places; one of n or more samples
/// gives all orders alike.
///
/// `firsts`: the first sample of each shard, ascending from 0, below n; an empty shard has that of
/// the next one. `buffer`: in [1, 2^32). n < 2^32. Depends on the arguments alone: on Philox and
/// on nothing of the platform. Cost: time O(n), 8 bytes a sample and a shard; no file is read.
std::vector<int64_t> buffer_order(std::span<const int64_t> firsts, int64_t n, int64_t buffer,
                                  int64_t seed);

}  // namespace lockstep::inline internal
