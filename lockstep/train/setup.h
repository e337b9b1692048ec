#pragma once
// From the configuration to the parts of a run.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/amp/master_weights.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/transforms.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/models/build_model.h"
#include "lockstep/parallel/virtual_ranks.h"
#include "lockstep/process_group.h"
#include "lockstep/train/config/config.h"

namespace lockstep {

/// Weights drawn from `seed` alone, so that every rank builds the same network; then those of
/// model.pretrained, if any. Errors: kInvalidArgument (unknown name), those of load_weights().
/// `warns`: of weights that do not fit; one rank is enough.
std::shared_ptr<Model> make_model(const ModelConfig& config, int64_t seed, bool warns = true);

/// The same network, to be filled from elsewhere.
ModelConfig without_pretrained(ModelConfig config);

/// For levels O2 and O3, which cast the model; otherwise nothing.
std::unique_ptr<MasterWeights> make_masters(AmpLevel level, Model& model);

/// Errors: kInvalidArgument, with the place of the item in the configuration.
ImageTransform make_image_transform(const DatasetConfig& config, ImageShape shape, int64_t seed);

/// The leading part of `size` records that dataset.sample_ratio leaves; at least one.
int64_t samples_used(const DatasetConfig& dataset, int64_t size);

/// By dataset.usage.
Split split_of(const DatasetConfig& dataset);

/// Of a classifier's data, one line for each section that lacks some of its files; `eval` too,
/// where it is wanted and there. See missing_cifar10_warning().
std::vector<std::string> missing_files(const Config& config, bool with_eval);

/// Errors: kInvalidArgument when data have more classes than the model tells apart.
void check_classes(int64_t of_data, int64_t of_model);

/// One rank's way through a data set.
struct DataParts {
  std::vector<DistributedSampler> samplers;  ///< One for each of the rank's virtual ranks.
  std::unique_ptr<BatchSource> loader;
  std::vector<std::string> notes{};  ///< What a log should say of the data; see TextSamples.
};
/// The section `train` or `eval`, for a rank of `virtual_ranks`. In training the loader's batches
/// are those of all its virtual ranks, laid in turn (see lay_in_turn()); else they are of one
/// virtual rank. Errors: kNotFound, kCorrupt (the files), kInvalidArgument (labels beyond the
/// model's classes). `max_workers`: threads that it may have, whatever loader.num_workers says; a
/// note tells.
DataParts make_data(const Config& config, const VirtualRankRange& virtual_ranks, bool training,
                    int max_workers);

/// Cores of this rank alone (see own_cores()): what MindOCR bounds num_workers by, too.
int workers_of(const World& world);

/// This rank's virtual ranks: those of parallel.virtual_ranks, or one.
VirtualRankRange virtual_ranks_of(const Config& config, const World& world);

/// In a later generation there may be a number of ranks that nobody chose, because hosts joined or
/// left. Where they are more than parallel.virtual_ranks, `config` goes on with a virtual rank a
/// rank, and the line that says so comes back; else an empty one.
std::string leave_too_few_virtual_ranks(Config& config, const World& world);

/// Checks that need the number of ranks: system.distribute, the section parallel.
/// Errors: kInvalidArgument.
void check_world(const Config& config, const World& world);

GroupOptions group_options(const ParallelConfig& config);

/// The intra-op threads that a rank shall use; see ParallelConfig::threads.
int threads_of(const ParallelConfig& config, const World& world);

/// Gives them to this process. Once, before the first tensor operation.
void set_threads(int threads);

/// Collective. Ranks may see different disks: all must go on from the same checkpoint, which is
/// known by its step and the SHA-256 of its state.json (and so of all its files). `checkpoint`: its
/// folder; empty for a new run. Errors: kMismatch naming two ranks that differ.
void check_same_start(int64_t step, const std::filesystem::path& checkpoint, ProcessGroup& group);

}  // namespace lockstep
