#include "lockstep/train/same_on_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/train/config/shared_values.h"

namespace lockstep::inline internal {
namespace {

using Values = std::map<std::string, std::string>;

/// The separator is a zero byte: neither keys nor values contain one.
std::string to_bytes(const Values& values) {
  std::string bytes;
  for (const auto& [key, value] : values) bytes += key + '\0' + value + '\0';
  return bytes;
}

Values from_bytes(const std::string& bytes) {
  Values values;
  const auto parts = split(bytes, '\0');
  for (size_t i = 0; i + 1 < parts.size(); i += 2) values[parts[i]] = parts[i + 1];
  return values;
}

/// Broadcasts `bytes` from `root` to every rank.
std::string broadcast_bytes(ProcessGroup& group, std::string bytes, int root) {
  auto size = static_cast<int64_t>(bytes.size());
  group.broadcast(&size, 1, DType::kInt64, root).wait();
  bytes.resize(static_cast<size_t>(size));
  if (size > 0) group.broadcast(bytes.data(), size, DType::kUint8, root).wait();
  return bytes;
}

/// Gathers `own` of every rank.
std::vector<uint64_t> gather(ProcessGroup& group, uint64_t own) {
  std::vector<uint64_t> all(static_cast<size_t>(group.size()));
  group.all_gather(&own, all.data(), 1, DType::kInt64).wait();
  return all;
}

/// "rank 1", or "ranks 1, 3": the ranks with the value of the rank `like`.
std::string ranks_like(const std::vector<uint64_t>& all, size_t like) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == all[like]) ranks.push_back(static_cast<int>(rank));
  }
  return rank_words(ranks);
}

}  // namespace

void check_same_config(const Config& config, ProcessGroup& group) {
  if (group.size() == 1) return;
  const std::string own = to_bytes(shared_values(config));
  const auto digests = gather(group, hash_of(own));
  const auto other = std::find_if(digests.begin(), digests.end(),
                                  [&](uint64_t digest) { return digest != digests[0]; });
  if (other == digests.end()) return;
  const auto rank = static_cast<size_t>(other - digests.begin());
  const auto of_other = from_bytes(broadcast_bytes(group, own, static_cast<int>(rank)));
  const auto of_root = from_bytes(broadcast_bytes(group, own, 0));
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("the ranks differ: {}", first_difference(of_other, ranks_like(digests, rank),
                                                           of_root, ranks_like(digests, 0))));
}

void check_same_samples(const DataSamples& train, const DataSamples& eval, ProcessGroup& group) {
  struct Samples {
    DataSamples train;
    DataSamples eval;
  };
  static_assert(sizeof(Samples) == 4 * sizeof(int64_t));
  const Samples own{train, eval};
  std::vector<Samples> all(static_cast<size_t>(group.size()));
  group.all_gather(&own, all.data(), 4, DType::kInt64).wait();
  const auto check = [&](DataSamples Samples::*samples, const char* what) {
    for (size_t rank = 1; rank < all.size(); ++rank) {
      const int64_t here = (all[rank].*samples).count;
      const int64_t of_root = (all[0].*samples).count;
      if (here == of_root && (all[rank].*samples).digest == (all[0].*samples).digest) continue;
      if (here == of_root) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("the ranks differ: the {} samples of rank {} have other names, "
                                "labels or weights than those of rank 0; both need copies of the "
                                "same data",
                                what, rank));
      }
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("the ranks differ: rank {} has {} {} samples, rank 0 has {}; is the "
                              "copy of the data of rank {} complete?",
                              rank, here, what, of_root, here < of_root ? rank : 0));
    }
  };
  check(&Samples::train, "training");
  check(&Samples::eval, "evaluation");
}

void check_same_teacher(uint64_t digest, ProcessGroup& group) {
  const auto all = gather(group, digest);
  const auto other =
      std::find_if(all.begin(), all.end(), [&](uint64_t one) { return one != all[0]; });
  if (other == all.end()) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("the ranks differ: the teacher (loss.teacher.pretrained) of {} has other "
                  "weights than that of {}",
                  ranks_like(all, static_cast<size_t>(other - all.begin())), ranks_like(all, 0)));
}

uint64_t weights_digest(const torch::nn::Module& module) {
  Hash hash;
  for (const auto& parameter : module.parameters()) {
    const auto values = parameter.detach().cpu().contiguous();
    hash.update(values.data_ptr(), values.nbytes());
  }
  return first_64_bits(hash.hex());
}

WeightsComparison compare_weights(uint64_t own, ProcessGroup& group) {
  constexpr size_t kNamed = 8;
  std::vector<uint64_t> all(static_cast<size_t>(group.size()));
  group.all_gather(&own, all.data(), 1, DType::kInt64).wait();
  std::vector<size_t> others;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != all[0] && others.size() < kNamed) others.push_back(rank);
  }
  if (others.empty()) {
    return {true, fmt::format("Weights: {:016x} on {} rank{}", all[0],
                              group.size() == 1 ? "the one" : fmt::format("all {}", group.size()),
                              group.size() == 1 ? "" : "s")};
  }
  return {false, fmt::format("Weights: {:016x} on rank 0, others on rank{} {}", all[0],
                             others.size() == 1 ? "" : "s", fmt::join(others, ", "))};
}

}  // namespace lockstep::inline internal
