#pragma once
// Collectives on memory that the other ranks cannot reach: in chunks through staging areas.
//
// Each has one barrier per round. In round t a rank writes chunk t, works on chunk t - 1 and reads
// chunk t - 2. So the two halves of a staging area are never written and read in the same round.

#include "lockstep/comm/native/shm/barrier.h"

namespace lockstep::shm {

/// Data that the functions below share.
struct StagedCall {
  Barrier& barrier;
  const Control& control;
  int rank;
  int size;
  DType dtype;
  const Waiting& waiting;
};

void staged_all_reduce(const StagedCall& call, std::byte* data, int64_t count, ReduceOp op);
/// Only root's `data` changes.
void staged_reduce(const StagedCall& call, std::byte* data, int64_t count, ReduceOp op, int root);
void staged_reduce_scatter(const StagedCall& call, const std::byte* in, std::byte* out,
                           int64_t count, ReduceOp op);
void staged_all_gather(const StagedCall& call, const std::byte* in, std::byte* out, int64_t count);
void staged_broadcast(const StagedCall& call, std::byte* data, int64_t count, int root);

}  // namespace lockstep::shm
