#pragma once
// Builds the parts of a run from the configuration.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/amp/master_weights.h"
#include "lockstep/data/loader.h"
#include "lockstep/distributed_data_parallel.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/models/build/build_model.h"
#include "lockstep/process_group.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// Draws the weights from `seed` alone, so that every rank builds the same network; then loads
/// those of model.pretrained, if any. Errors: kInvalidArgument (unknown name), those of
/// load_weights(). `warns`: log weights that do not fit; one rank is enough.
std::shared_ptr<Model> make_model(const ModelConfig& config, int64_t seed, bool warns = true);

/// The same network without pretrained weights, for a caller that fills it.
ModelConfig without_pretrained(ModelConfig config);

/// For levels O2 and O3, which cast the model; null for others.
std::unique_ptr<MasterWeights> make_masters(AmpLevel level, Model& model);

/// Errors: kInvalidArgument if the data have more classes than the model.
void check_classes(int64_t of_data, const ModelConfig& model);

/// For --check: none if data are missing, which is no error of the configuration. `why`: the
/// reason.
std::optional<int64_t> count_if_there(const std::function<int64_t()>& count, std::string& why);

/// The data of section `train`, as --check finds it.
struct CheckedData {
  int64_t samples = 0;
  std::string note{};  ///< Printed behind the number of samples.
  int64_t image_elements = 0;
  std::vector<std::string> warnings{};
  std::vector<std::string> classes{};  ///< As DataParts::classes, as far as they are known.
  int64_t byte_elements = 0;  ///< Those of image_elements that travel to a CUDA device as bytes.

  /// Of the tensors that are made ahead for `device`.
  int64_t sample_bytes(c10::Device device) const {
    const int64_t bytes = device.is_cuda() ? byte_elements : 0;
    return bytes + (image_elements - bytes) * int64_t{sizeof(float)};
  }
};

/// One rank's source of samples.
struct DataParts {
  std::vector<DistributedSampler> samplers;  ///< One for each of the rank's virtual ranks.
  std::unique_ptr<BatchSource> loader;
  int64_t samples = 0;               ///< Those of the data set that are used.
  std::vector<std::string> notes{};  ///< Remarks about the data for the log; see OcrSamples.
  std::vector<std::string> warnings{};
  std::vector<std::string> classes{};  ///< Names of a classifier's classes; none: they are numbers.
  /// See PictureIndex::digest(), with that of an order of its own; 0 of other data. With weights
  /// their digest is part of it.
  uint64_t digest = 0;
  SampleOrder order = torch_randperm;
  /// That order may have a sample several times. Then each draw has random values of its own, by
  /// its place in the order; see BatchRows.
  bool with_replacement = false;
};
/// The data of section `train` or `eval`, for a rank of `virtual_ranks`. In training these are the
/// parts of the loader's order; an evaluation reads them one after the other. Errors: kNotFound,
/// kCorrupt (the files), kInvalidArgument (labels beyond the model's classes). `max_workers`: limit
/// of threads, whatever loader.num_workers; a note reports it. `device`: of the network. For CUDA
/// batches are page-locked, and pictures to train on come as bytes where their pipeline allows it.
DataParts make_data(const Config& config, const VirtualRankRange& virtual_ranks, bool training,
                    int max_workers, c10::Device device);

/// Cores of this rank alone (see own_cores()). MindOCR bounds num_workers by them, too.
int workers_of(const World& world);

/// This rank's virtual ranks: those of parallel.virtual_ranks, or one.
VirtualRankRange virtual_ranks_of(const Config& config, const World& world);

/// In a later generation the number of ranks may have changed because hosts joined or left. If it
/// exceeds parallel.virtual_ranks, sets `config` to one virtual rank per rank and returns a line
/// about it; else an empty one.
std::string leave_too_few_virtual_ranks(Config& config, const World& world);

/// Checks that need the number of ranks: system.distribute, the section parallel.
/// Errors: kInvalidArgument.
void check_world(const Config& config, const World& world);

GroupOptions group_options(const ParallelConfig& config);

/// The intra-op threads of a rank; see ParallelConfig::threads.
int threads_of(const ParallelConfig& config, const World& world);

/// Sets this process's number of intra-op threads, best before the first tensor operation.
void set_threads(int threads);

/// Collective. Ranks may see different disks, but all must resume from the same checkpoint. Its
/// step and the SHA-256 of its state.json (and so of all its files) identify it. `checkpoint`: its
/// folder; empty for a new run. Errors: kMismatch naming two ranks that differ.
void check_same_start(int64_t step, const std::filesystem::path& checkpoint, ProcessGroup& group);

}  // namespace lockstep::inline internal
