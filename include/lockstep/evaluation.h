#pragma once
// These functions give exact results of an evaluation on several ranks: each rank adds up its own,
// and one call joins them.
//
// All functions are collective over `group`, need no padding and no equal numbers of samples, and
// give the same bits on every rank. In a group of one they are plain copies.
//
// Threads: one thread at a time for a group. Each call returns when its result is there.
// Cost: small messages, so the latency of a few collectives, and the gathered bytes. See each.
// Errors: those of the group; further ones at each function.
//
// Batch norm's running statistics differ between ranks between training forwards. To evaluate the
// weights that rank 0 saves, call broadcast_buffers(group, net) first.
//
// Use:
//   lockstep::broadcast_buffers(group, *net);
//   net->eval();
//   const torch::NoGradGuard no_grad;
//   const auto answers = net->forward(images).argmax(1);  // of this rank's images
//   const auto sums = lockstep::global_sums(
//       group, {{"right", answers.eq(labels).sum().item<double>()},
//               {"samples", static_cast<double>(labels.size(0))}});
//   const double accuracy = sums.at("right") / sums.at("samples");  // over all ranks
//   const auto all_answers = lockstep::gather_rows(group, answers);

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

/// Copies rank 0's values of the module's buffers to every rank. Cost: a broadcast for each buffer.
/// Errors: kInvalidArgument naming a buffer that is sparse, or has elements that share memory;
/// nothing was sent.
void broadcast_buffers(ProcessGroup& group, const torch::nn::Module& module);

/// The mean over all samples of all ranks, from this rank's `sum` over its `count` samples (0 is
/// allowed). NaN if no rank has any. Cost: a reduction of 16 bytes.
double global_mean(ProcessGroup& group, double sum, int64_t count,
                   CallSite site = CallSite::here());

/// Replaces named sums (right answers, losses, samples) by those over all ranks, in one reduction.
/// Cost: 8 bytes a sum. Before that, two broadcasts and a reduction of 8 bytes compare the names.
/// Errors: kMismatch if the names differ between ranks.
std::map<std::string, double> global_sums(ProcessGroup& group,
                                          const std::map<std::string, double>& sums,
                                          CallSite site = CallSite::here());

/// (n, ...) -> (sum of n, ...), rank 0's rows first; n may differ between ranks and be 0. The types
/// and the other dimensions are the same on all ranks. Cost: a copy of all rows on every rank, by
/// one all_gatherv; before that, two broadcasts, a reduction and an all_gather of 8 bytes.
/// Errors, on every rank: kInvalidArgument (no dimension, not dense, a type without a DType),
/// kMismatch.
at::Tensor gather_rows(ProcessGroup& group, const at::Tensor& rows,
                       CallSite site = CallSite::here());

/// Joins the ranks' lists of texts of any length, rank 0's first. Cost: two all_gathers of 8 bytes,
/// and two all_gatherv, of the lengths and of the bytes.
std::vector<std::string> gather_texts(ProcessGroup& group, const std::vector<std::string>& texts,
                                      CallSite site = CallSite::here());

}  // namespace lockstep
