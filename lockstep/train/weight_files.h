#pragma once
// Files of weights alone, beside the folders that a run goes on from: best.EXT and e{N}.EXT, as
// MindOCR names them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/keep_policy.h"
#include "lockstep/safetensors.h"
#include "lockstep/writer_fence.h"

namespace lockstep {

/// The weights after an epoch, and what they are ranked by.
struct EpochWeights {
  int64_t epoch = 0;
  double value = 0;
  bool operator==(const EpochWeights&) const = default;
};

/// What an epoch that was not evaluated is ranked by, in MindOCR too.
inline constexpr double kUnevaluated = 1e-8;

/// Those of `files` that stay, in the order of the policy: best first, or newest first. Of equals
/// the later one is better.
std::vector<EpochWeights> weights_to_keep(std::vector<EpochWeights> files,
                                          const KeepPolicy& policy);

/// Writes and removes such files in `dir`. One process (rank 0).
class WeightFiles {
 public:
  /// `format`: "ckpt" (MindSpore's) or "safetensors". `earlier`: epochs before a resume; those
  /// whose files are still there count.
  WeightFiles(std::filesystem::path dir, std::string format, const KeepPolicy& policy,
              const std::vector<EpochWeights>& earlier, const WriterFence& fence = {});

  /// Writes e{N}, unless the policy would remove it at once, and removes what it does not keep. An
  /// epoch that was there takes its new value. `equal`: a file in the same folder, or one below,
  /// that holds these weights in this format; where it can be, the new one is a second name of it.
  /// Errors: kIo, kMismatch (see WriterFence).
  void save_epoch(const EpochWeights& epoch, const TensorMap& weights,
                  const std::filesystem::path& equal = {});
  void save_best(const TensorMap& weights, const std::filesystem::path& equal = {}) const;

  /// In the policy's order.
  const std::vector<EpochWeights>& kept() const { return kept_; }
  std::filesystem::path path_of(int64_t epoch) const;
  std::filesystem::path best_path() const;
  const std::string& format() const { return format_; }

 private:
  void save(const std::filesystem::path& path, const TensorMap& weights,
            const std::filesystem::path& equal) const;

  std::filesystem::path dir_;
  std::string format_;
  KeepPolicy policy_;
  std::vector<EpochWeights> kept_;
  WriterFence fence_;
};

}  // namespace lockstep
