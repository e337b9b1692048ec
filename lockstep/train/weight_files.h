#pragma once
// Files of weights alone, beside the folders of checkpoints: best.EXT and e{N}.EXT, named as in
// MindOCR.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/checkpoint_folder.h"
#include "lockstep/weights.h"

namespace lockstep::inline internal {

/// The weights after an epoch, and the value that ranks them.
struct EpochWeights {
  int64_t epoch = 0;
  double value = 0;
  bool operator==(const EpochWeights&) const = default;
};

/// The rank value of an epoch that was not evaluated, as in MindOCR. Where less is better
/// WeightFiles makes NaN of it, which is never better than a number.
inline constexpr double kUnevaluated = 1e-8;

/// The subset of `files` to keep, in the order of the policy: best first, or newest first. Of equal
/// values the later one is better.
std::vector<EpochWeights> weights_to_keep(std::vector<EpochWeights> files,
                                          const KeepPolicy& policy);

/// Writes and removes such files in `dir`. One process (rank 0).
class WeightFiles {
 public:
  /// `format`: "ckpt" (MindSpore's) or "safetensors". `earlier`: epochs before a resume; they count
  /// if their files still exist.
  WeightFiles(std::filesystem::path dir, std::string format, const KeepPolicy& policy,
              const std::vector<EpochWeights>& earlier, const WriterFence& fence = {});

  /// Writes e{N}, unless the policy would remove it at once, and removes files that the policy
  /// drops. An existing epoch takes its new value. `equal`: a file in the same folder, or one
  /// below, that holds these weights in this format. If possible, the new file becomes a hard link
  /// to it. Errors: kIo, kMismatch (see WriterFence).
  void save_epoch(const EpochWeights& given, const TensorMap& weights,
                  const std::filesystem::path& equal = {});
  void save_best(const TensorMap& weights, const std::filesystem::path& equal = {}) const;
  /// The file of that epoch becomes the best, too. Returns whether there is one.
  bool name_best(int64_t epoch) const;

  /// In the policy's order.
  const std::vector<EpochWeights>& kept() const { return kept_; }
  std::filesystem::path path_of(int64_t epoch) const;
  std::filesystem::path best_path() const;
  const std::string& format() const { return format_; }

 private:
  EpochWeights ranked(const EpochWeights& epoch) const;
  void save(const std::filesystem::path& path, const TensorMap& weights,
            const std::filesystem::path& equal) const;

  std::filesystem::path dir_;
  std::string format_;
  KeepPolicy policy_;
  std::vector<EpochWeights> kept_;
  WriterFence fence_;
};

}  // namespace lockstep::inline internal
