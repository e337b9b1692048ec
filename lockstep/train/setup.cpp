#include "lockstep/train/setup.h"

#include <ATen/Parallel.h>
#include <ATen/core/Generator.h>
#include <fmt/format.h>
#include <torch/utils.h>

#include <cmath>

#include "lockstep/autocast.h"
#include "lockstep/checkpoint/file_digest.h"
#include "lockstep/data/image_batch.h"
#include "lockstep/data/mixed_batch.h"
#include "lockstep/error.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/picture_data.h"
#include "lockstep/train/text_data.h"
#include "lockstep/train/zoo_parts.h"
#include "lockstep/training_checkpoint.h"
#include "lockstep/world/cores.h"

namespace lockstep {

namespace fs = std::filesystem;

namespace {

std::shared_ptr<Model> make_own_network(const ModelConfig& config) {
  auto model = config.network->make(config.head.num_classes);
  if (model && !model->parameters().empty()) return model;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("model.network: '{}' made {}", config.network->name,
                          model ? "a network without parameters" : "no network"));
}

}  // namespace

std::shared_ptr<Model> make_model(const ModelConfig& config, int64_t seed, bool warns) {
  link_zoo_parts();
  torch::manual_seed(static_cast<uint64_t>(seed));
  auto model = config.network ? make_own_network(config) : build_model(config.spec());
  // Initial weights: a tensor that does not fit keeps its values, with a warning, as in MindOCR.
  const std::string& backbone = config.backbone.pretrained;
  if (!backbone.empty())
    load_weights(require_weights(backbone), *model, {false, "backbone.", warns});
  if (!config.pretrained.empty()) {
    load_weights(require_weights(config.pretrained), *model, {false, "", warns});
  }
  return model;
}

ModelConfig without_pretrained(ModelConfig config) {
  config.pretrained.clear();
  config.backbone.pretrained.clear();
  return config;
}

std::unique_ptr<MasterWeights> make_masters(AmpLevel level, Model& model) {
  if (level == AmpLevel::kO0 || level == AmpLevel::kO1) return nullptr;
  const auto device = model.parameters().front().device().type();
  return std::make_unique<MasterWeights>(model, level, low_precision(device));
}

const SmallImages& small_images_of(const DatasetConfig& config) {
  return small_images(config.type, config.coarse);
}

ImageTransform make_image_transform(const DatasetConfig& config, ImageShape shape, int64_t seed) {
  std::vector<Transform> steps;
  std::string where;
  try {
    for (const auto& item : config.transforms) {
      where = item.where + ": ";
      if (!is_mixing(item.name)) steps.push_back(make_transform({item.name, item.args}));
    }
    if (!config.transforms.empty()) where = config.transforms.front().where + ": ";
    return ImageTransform(std::move(steps), shape, static_cast<uint64_t>(seed), config.channels);
  } catch (const Error& error) {
    throw Error(error.code(), where + error.what());
  }
}

Mixing make_mixing(const DatasetConfig& config) {
  Mixing mixing;
  for (const auto& item : config.transforms) {
    if (!is_mixing(item.name)) continue;
    try {
      add_mixing({item.name, item.args}, mixing);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", item.where, error.what()));
    }
  }
  return mixing;
}

int64_t samples_used(const DatasetConfig& dataset, int64_t size) {
  return std::max<int64_t>(1,
                           std::llround(static_cast<double>(size) * dataset.sample_ratios.front()));
}

Split split_of(const DatasetConfig& dataset) {
  if (dataset.usage == "all") return Split::kAll;
  return dataset.usage == "train" ? Split::kTrain : Split::kTest;
}

std::vector<std::string> missing_files(const Config& config, bool with_eval) {
  if (config.model.type != ModelType::kCls) return {};
  std::vector<std::string> lines;
  const auto look = [&](const DatasetConfig& dataset) {
    if (dataset.own || dataset.has_picture_files()) return;
    auto line = small_images_of(dataset).missing(dataset.data_dirs.front(), split_of(dataset));
    if (!line.empty()) lines.push_back(std::move(line));
  };
  look(config.train.dataset);
  if (with_eval && config.eval) look(config.eval->dataset);
  return lines;
}

void check_classes(int64_t of_data, int64_t of_model) {
  if (of_data <= of_model) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("the data have {} classes, model.head.num_classes is {}", of_data, of_model));
}

namespace {

/// The limit of a disk. It exceeds DiskWork's, whose error names the late ranks and so comes first.
std::chrono::seconds read_limit(const Config& config) {
  return std::chrono::seconds(config.train.disk_timeout_s + 10);
}

LoaderOptions loader_options(const LoaderConfig& config, int parts, int max_workers) {
  LoaderOptions options;
  options.batch_size = config.batch_size * parts;
  options.drop_remainder = config.drop_remainder;
  options.threads = data_threads(config, max_workers);
  options.prefetch = batches_ahead(config, options.threads);
  return options;
}

std::shared_ptr<const ImageDataset> load_images(const Config& config,
                                                const DatasetConfig& dataset) {
  auto data = small_images_of(dataset).load(dataset.data_dirs.front(), split_of(dataset));
  check_classes(data->num_classes(), config.model.head.num_classes);
  return data;
}

}  // namespace

namespace {

/// A registered data set, whose batches are checked: the trainer relies on their rows.
class OwnBatches final : public BatchMaker {
 public:
  OwnBatches(std::unique_ptr<const BatchMaker> maker, std::string name)
      : maker_(std::move(maker)), name_(std::move(name)) {
    if (!maker_) refuse("made no data set");
    if (maker_->size() < 1) refuse("made a data set without samples");
  }

  int64_t size() const override { return maker_->size(); }

  Batch make(const BatchRows& rows) const override {
    Batch batch = maker_->make(rows);
    const int64_t count = std::ssize(rows.samples);
    check("images", batch.images, count);
    for (const auto& column : batch.targets) check("targets", column, count);
    for (const auto& column : batch.more_inputs) check("more_inputs", column, count);
    if (batch.valid == rows.num_counted) return batch;
    refuse(fmt::format("made a batch with valid = {}, not rows.num_counted = {}", batch.valid,
                       rows.num_counted));
  }

 private:
  void check(const char* what, const at::Tensor& column, int64_t rows) const {
    if (!column.defined()) refuse(fmt::format("left Batch::{} undefined", what));
    if (column.dim() > 0 && column.size(0) == rows) return;
    refuse(fmt::format("made Batch::{} of {} rows for {} samples", what,
                       column.dim() > 0 ? column.size(0) : 0, rows));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} {}", name_, what));
  }

  std::unique_ptr<const BatchMaker> maker_;
  std::string name_;  ///< For errors.
};

}  // namespace

std::unique_ptr<const BatchMaker> make_own_dataset(const Config& config, bool training) {
  const auto& dataset = training ? config.train.dataset : config.eval->dataset;
  const auto name = fmt::format("{}: {}.dataset: '{}'", dataset.where, training ? "train" : "eval",
                                dataset.own->name);
  return std::make_unique<OwnBatches>(
      dataset.own->make({training, static_cast<uint64_t>(config.system.seed)}), name);
}

int workers_of(const World& world) {
  return own_cores(world);
}

DataParts make_data(const Config& config, const VirtualRankRange& virtual_ranks, bool training,
                    int max_workers) {
  const bool images = config.model.type == ModelType::kCls;
  if (images && !training) check_same_kind(config);
  const auto& dataset = training ? config.train.dataset : config.eval->dataset;
  const auto& loader = training ? config.train.loader : config.eval->loader;
  const int64_t seed = config.system.seed;
  auto options = loader_options(loader, training ? virtual_ranks.count : 1, max_workers);
  options.timeout = read_limit(config);
  DataParts parts;
  int64_t used = 0;
  std::unique_ptr<const BatchMaker> maker;
  if (dataset.own) {
    maker = make_own_dataset(config, training);
    used = maker->size();
  } else if (dataset.has_picture_files()) {
    const auto index = make_picture_index(config, training);
    used = index->size();
    parts.warnings = index->warnings();
    parts.digest = index->digest();
    parts.classes = index->classes().names;
    maker = make_picture_batches(config, training, index);
  } else if (images) {
    const auto data = load_images(config, dataset);
    used = samples_used(dataset, data->size());
    parts.classes = small_images_of(dataset).class_names(dataset.data_dirs.front());
    maker = image_batches(data, make_image_transform(dataset, data->shape(), seed));
  } else {
    const auto samples = make_text_samples(dataset, seed, training);
    used = samples->size();
    parts.notes = samples->notes();
    maker = text_batches(samples, text_columns(config.model.type, training),
                         static_cast<uint64_t>(seed));
  }
  if (const Mixing mixing = make_mixing(dataset); mixing.any()) {
    maker = mixed_batches(std::move(maker), {.mixing = mixing,
                                             .seed = static_cast<uint64_t>(seed),
                                             .parts = virtual_ranks.count,
                                             .num_classes = config.model.head.num_classes});
  }
  if (images) {
    const auto& given = std::get<ClassNames>(config.postprocess).label_list;
    if (!given.empty()) parts.classes = given;
  }
  parts.loader = std::make_unique<Loader>(std::move(maker), options);
  if (loader.num_workers > max_workers) {
    parts.notes.push_back(
        fmt::format("{}.loader.num_workers is {}, as many as this rank has cores: {} would only "
                    "compete for them",
                    training ? "train" : "eval", max_workers, loader.num_workers));
  }
  for (int virtual_rank = virtual_ranks.first;
       virtual_rank < virtual_ranks.first + virtual_ranks.count; ++virtual_rank) {
    parts.samplers.emplace_back(used, virtual_rank, virtual_ranks.total,
                                SamplerOptions{.shuffle = loader.shuffle, .seed = seed});
  }
  return parts;
}

void check_world(const Config& config, const World& world) {
  if (config.system.distribute == false && world.size > 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("system.distribute is False, but {} started {} processes; start one, "
                            "or set it to True",
                            world.launcher, world.size));
  }
  virtual_ranks_of(config, world);
  const std::string& backend = config.parallel.backend;
  const bool one_order =
      backend == "auto" || backend == "native" || backend == "c10d:nccl" || backend == "hccl";
  if (config.parallel.virtual_ranks > 0 && world.size > 2 && !one_order) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("parallel.virtual_ranks: parallel.backend {} adds values of more than two "
                    "ranks in its own order; take native",
                    backend));
  }
}

VirtualRankRange virtual_ranks_of(const Config& config, const World& world) {
  const auto given = static_cast<int>(config.parallel.virtual_ranks);
  try {
    return deal_virtual_ranks(given > 0 ? given : world.size, world.rank, world.size);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("parallel.virtual_ranks: {}", error.what()));
  }
}

std::string leave_too_few_virtual_ranks(Config& config, const World& world) {
  if (world.generation == 1 || config.parallel.virtual_ranks == 0) return "";
  try {
    virtual_ranks_of(config, world);
    return "";
  } catch (const Error& error) {
    const std::string line = fmt::format(
        "{}. Hosts joined or left: until their ranks are few enough again, each rank has one "
        "virtual "
        "rank, the global batch is {} samples, and the bits are not those of {} virtual ranks",
        error.what(), config.train.loader.batch_size * world.size, config.parallel.virtual_ranks);
    config.parallel.threads = threads_of(config.parallel, world);
    config.parallel.virtual_ranks = 0;
    return line;
  }
}

GroupOptions group_options(const ParallelConfig& config) {
  GroupOptions options;
  options.backend = config.backend;
  options.order = config.any_order ? Order::kAny : Order::kFixed;
  options.timeout = std::chrono::seconds(config.timeout_s);
  return options;
}

int threads_of(const ParallelConfig& config, const World& world) {
  if (config.threads > 0) return static_cast<int>(config.threads);
  return config.virtual_ranks > 0 ? 1 : world.threads;
}

void set_threads(int threads) {
  at::set_num_threads(threads);
  if (at::get_num_interop_threads() == 1) return;
  try {
    at::set_num_interop_threads(1);
  } catch (const c10::Error&) {
    // The program has used that pool before. Nothing here does, so its size is no matter.
  }
}

namespace {

/// The first eight bytes of the checkpoint's digest; 0 without a checkpoint.
int64_t first_bytes_of_digest(const fs::path& checkpoint) {
  if (checkpoint.empty()) return 0;
  const std::string hex = digest_file(checkpoint / "state.json").hex.substr(0, 16);
  return static_cast<int64_t>(std::stoull(hex, nullptr, 16));
}

}  // namespace

void check_same_start(int64_t step, const fs::path& checkpoint, ProcessGroup& group) {
  struct Start {
    int64_t step;
    int64_t digest;
  };
  const Start own{step, first_bytes_of_digest(checkpoint)};
  std::vector<Start> starts(static_cast<size_t>(group.size()));
  group.all_gather(&own, starts.data(), 2, DType::kInt64).wait();
  const auto describe = [](const Start& start) {
    if (start.digest == 0) return std::string("nothing");
    return fmt::format("step {} (state.json {:016x})", start.step,
                       static_cast<uint64_t>(start.digest));
  };
  for (size_t rank = 0; rank < starts.size(); ++rank) {
    if (starts[rank].step == starts[0].step && starts[rank].digest == starts[0].digest) continue;
    throw Error(ErrorCode::kMismatch,
                fmt::format("rank 0 resumes from {}, rank {} from {}: all ranks must see the same "
                            "folder of checkpoints",
                            describe(starts[0]), rank, describe(starts[rank])));
  }
}

}  // namespace lockstep
