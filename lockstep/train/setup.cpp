#include "lockstep/train/setup.h"

#include <ATen/Parallel.h>
#include <ATen/core/Generator.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/utils.h>

#include <algorithm>

#include "lockstep/autocast.h"
#include "lockstep/checkpoint/file_digest.h"
#include "lockstep/comm/group/backends.h"
#include "lockstep/data/batches.h"
#include "lockstep/data/pixel_form.h"
#include "lockstep/error.h"
#include "lockstep/train/config/task_settings.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/sample_weights.h"
#include "lockstep/train/task_parts.h"
#include "lockstep/weights.h"
#include "lockstep/world/cores.h"

namespace lockstep::inline internal {

namespace fs = std::filesystem;

namespace {

std::shared_ptr<Model> make_own_network(const ModelConfig& config) {
  auto model = config.network->make(config.num_classes());
  if (model && !model->parameters().empty()) return model;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: '{}' made {}", config.task ? "the recipe" : "model.network",
                  config.network->name, model ? "a network without parameters" : "no network"));
}

std::shared_ptr<Backbone> make_own_backbone(const ModelConfig& config) {
  auto backbone = config.backbone.own->make();
  const auto channels = backbone ? backbone->feature_channels() : std::vector<int64_t>();
  const size_t maps = task_settings(config.type).feature_maps;
  const bool enough = maps > 0 ? channels.size() == maps : !channels.empty();
  if (enough && *std::min_element(channels.begin(), channels.end()) > 0) return backbone;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("model.backbone: '{}' made {}", config.backbone.name,
                  backbone ? fmt::format("one whose feature_channels() are [{}]: each is at least "
                                         "1, and {} takes {}",
                                         fmt::join(channels, ", "), config.neck.name,
                                         maps > 0 ? std::to_string(maps) : "the last")
                           : "no backbone"));
}

std::shared_ptr<Model> make_network(const ModelConfig& config) {
  if (config.network) return make_own_network(config);
  if (!config.backbone.own) return build_model(config.spec());
  return build_text_model(make_own_backbone(config), config.spec());
}

}  // namespace

std::shared_ptr<Model> make_model(const ModelConfig& config, int64_t seed, bool warns) {
  torch::manual_seed(static_cast<uint64_t>(seed));
  auto model = make_network(config);
  // Initial weights: a tensor that does not fit keeps its values, with a warning, as in MindOCR.
  const std::string& backbone = config.backbone.pretrained;
  if (!backbone.empty())
    load_weights(require_weights(backbone), *model, {false, "backbone.", warns, 0});
  if (!config.pretrained.empty()) {
    load_weights(require_weights(config.pretrained), *model,
                 {false, "", warns, config.num_classes()});
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

std::optional<int64_t> count_if_there(const std::function<int64_t()>& count, std::string& why) {
  try {
    return count();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    why = error.what();
    return std::nullopt;
  }
}

void check_classes(int64_t of_data, const ModelConfig& model) {
  if (of_data <= model.head.num_classes) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the data have {} classes, {} is {}", of_data,
                          model.task ? "Recipe::num_classes" : "model.head.num_classes",
                          model.head.num_classes));
}

namespace {

/// The limit of a disk. It exceeds DiskWork's, whose error names the late ranks and so comes first.
std::chrono::seconds read_limit(const Config& config) {
  return std::chrono::seconds(config.train.disk_timeout_s + 10);
}

LoaderOptions loader_options(const LoaderConfig& config, int parts, int max_workers) {
  LoaderOptions options;
  options.batch_size = config.batch_size;
  options.parts = parts;
  options.drop_remainder = config.drop_remainder;
  options.threads = data_threads(config, max_workers);
  options.prefetch = batches_ahead(config, options.threads);
  return options;
}

}  // namespace

int workers_of(const World& world) {
  return own_cores(world);
}

DataParts make_data(const Config& config, const VirtualRankRange& virtual_ranks, bool training,
                    int max_workers, c10::Device device) {
  const auto& dataset = training ? config.train.dataset : config.eval->dataset;
  const auto& loader = training ? config.train.loader : config.eval->loader;
  const int64_t seed = config.system.seed;
  auto options = loader_options(loader, training ? virtual_ranks.count : 1, max_workers);
  options.timeout = read_limit(config);
  options.device = device;
  DataParts parts;
  const bool as_bytes = training && device.is_cuda();  // metrics get the batch as it is made
  const auto form = as_bytes ? PixelForm::kBytes : PixelForm::kFloats;
  auto maker = task_parts(config).make_batches(config, training, form, parts);
  if (training && dataset.own) {
    const auto note = fmt::format("samples are drawn by the weights of '{}'", dataset.own->name);
    draw_by_weights({maker->weights(), note}, parts);
  }
  if (dataset.mixing.any()) {
    maker = mixed_batches(std::move(maker), {.mixing = dataset.mixing,
                                             .seed = static_cast<uint64_t>(seed),
                                             .num_classes = config.model.head.num_classes});
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
    parts.samplers.emplace_back(
        parts.samples, virtual_rank, virtual_ranks.total,
        SamplerOptions{.shuffle = loader.shuffle, .seed = seed, .order = parts.order});
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
  if (config.parallel.virtual_ranks > 0 && world.size > 2 && !sums_in_one_order(backend)) {
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
    const int64_t shared = config.parallel.global_batch;
    const std::string line = fmt::format(
        "{}. Hosts joined or left: until their ranks are few enough again, each rank has one "
        "virtual rank. The global batch is {} samples, and the bits are not those of {} virtual "
        "ranks",
        error.what(), shared > 0 ? shared : config.train.loader.batch_size * world.size,
        config.parallel.virtual_ranks);
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

}  // namespace lockstep::inline internal
