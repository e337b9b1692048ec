#pragma once
// Exact results of an evaluation that the ranks share: each adds up what it has, one call joins it.
//
// All are collective over `group`, need no padding and no equal numbers of samples, give the same
// bits on every rank, and are plain copies in a group of one. Errors: those of the group.
//
// Batch norm's running statistics are each rank's own between training forwards: to evaluate the
// weights that rank 0 saves, call broadcast_buffers(group, net) first.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/process_group.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

/// Gives the module's buffers, on every rank, the values of rank 0's. Cost: a broadcast.
void broadcast_buffers(ProcessGroup& group, const torch::nn::Module& module);

/// The mean over all samples of all ranks, of this rank's `sum` over its `count` samples (0 too).
/// NaN when no rank has any.
double global_mean(ProcessGroup& group, double sum, int64_t count,
                   CallSite site = CallSite::here());

/// Sums under names (right answers, losses, samples) become those over all ranks, in one reduction.
/// Errors: kMismatch when the ranks have other names.
std::map<std::string, double> global_sums(ProcessGroup& group,
                                          const std::map<std::string, double>& sums,
                                          CallSite site = CallSite::here());

/// (n, ...) with another n, 0 too, on each rank -> (sum of n, ...), rank 0's rows first.
/// The types and the other dimensions are the same on all ranks.
/// Errors, on every rank: kInvalidArgument (no dimension, not dense, a type that does not
/// travel), kMismatch.
at::Tensor gather_rows(ProcessGroup& group, const at::Tensor& rows,
                       CallSite site = CallSite::here());

/// One list of texts of any length, rank 0's first.
std::vector<std::string> gather_texts(ProcessGroup& group, const std::vector<std::string>& texts,
                                      CallSite site = CallSite::here());

}  // namespace lockstep
