#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "lockstep/base/log.h"
#include "lockstep/error.h"
#include "lockstep/train/compute_device.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/config/yaml_writer.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/patience.h"
#include "lockstep/train/picture_data.h"
#include "lockstep/train/plan.h"
#include "lockstep/train/results_folder.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/run.h"
#include "lockstep/train/same_on_ranks.h"
#include "lockstep/train/schedule/schedule.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/task/task.h"
#include "lockstep/train/text_data.h"

namespace lockstep {
namespace {

int64_t count_images(const DatasetConfig& config) {
  return small_images_of(config).count(config.data_dirs.front(), split_of(config));
}

/// The plan's inputs from the data.
struct TrainData {
  int64_t samples = 0;
  std::string note;  ///< Printed behind the number of samples.
  int64_t image_elements = 0;
};

TrainData check_images(const Config& config) {
  const SmallImages& images = small_images_of(config.train.dataset);
  check_classes(images.num_classes, config.model.head.num_classes);
  TrainData data;
  data.image_elements =
      make_image_transform(config.train.dataset, images.shape, config.system.seed).output().numel();
  if (config.eval) {
    check_same_kind(config);
    make_image_transform(config.eval->dataset, images.shape, config.system.seed);
    count_images(config.eval->dataset);
  }
  const int64_t count = count_images(config.train.dataset);
  const int64_t official = images.official_count(split_of(config.train.dataset));
  data.samples = samples_used(config.train.dataset, count > 0 ? count : official);
  if (count == 0) data.note = ", the official number: the data are not there yet";
  return data;
}

TrainData check_own_data(const Config& config) {
  const auto train = make_own_dataset(config, true);
  if (config.eval) {
    check_same_kind(config);
    make_own_dataset(config, false);
  }
  const int64_t first = 0;
  const Batch batch = train->make({0, {&first, 1}, 1});
  int64_t elements = 0;
  for (const auto& input : batch.inputs()) elements += input.numel();
  return {train->size(), "", elements};
}

/// Number of pictures; none if the data are missing, which is no error of the configuration. `why`
/// is the reason.
std::optional<int64_t> count_pictures(const Config& config, bool training, std::string& why) {
  try {
    return make_picture_index(config, training)->size();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    why = error.what();
    return std::nullopt;
  }
}

TrainData check_pictures(const Config& config) {
  TrainData data;
  const int64_t seed = config.system.seed;
  const auto size = make_picture_pipeline(config.train.dataset, seed).output();
  data.image_elements = size ? int64_t{3} * size->area() : 0;
  std::string why;
  const auto pictures = count_pictures(config, true, why);
  data.samples = pictures.value_or(config.train.loader.batch_size);
  if (!pictures) data.note = fmt::format(", a guess, because: {}", why);
  if (config.eval) {
    make_picture_pipeline(config.eval->dataset, seed);
    check_same_kind(config);
    if (pictures && !count_pictures(config, false, why)) {
      data.note += fmt::format("; to evaluate: {}", why);
    }
  }
  return data;
}

/// Pixels after the last transform that fixes a size; 0 without one.
int64_t pixels_of(const std::vector<ocr::Transform>& pipeline) {
  int64_t pixels = 0;
  for (const auto& transform : pipeline) {
    if (const auto* crop = std::get_if<ocr::RandomCropWithBBox>(&transform)) {
      pixels = int64_t{crop->crop_size[0]} * crop->crop_size[1];
    } else if (const auto* resize = std::get_if<ocr::RecResizeImg>(&transform)) {
      pixels = int64_t{resize->image_shape[0]} * resize->image_shape[1];
    }
  }
  return pixels;
}

/// Number of samples; none if the data are missing, which is no error of the configuration. `why`
/// is the reason.
std::optional<int64_t> count_samples(const DatasetConfig& dataset, int64_t seed, bool training,
                                     std::string& why) {
  try {
    return make_text_samples(dataset, seed, training)->size();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    why = error.what();
    return std::nullopt;
  }
}

TrainData check_text(const Config& config) {
  TrainData data;
  // A detector's batch has four more maps: text and its mask, borders and their mask.
  const int64_t planes = config.model.type == ModelType::kDet ? 3 + 4 : 3;
  data.image_elements = planes * pixels_of(config.train.dataset.pipeline);
  std::string why;
  const int64_t seed = config.system.seed;
  const auto samples = count_samples(config.train.dataset, seed, true, why);
  data.samples = samples.value_or(config.train.loader.batch_size);
  if (!samples) data.note = fmt::format(", a guess, because: {}", why);
  if (config.eval && !count_samples(config.eval->dataset, seed, false, why)) {
    data.note += fmt::format("; to evaluate: {}", why);
  }
  return data;
}

/// What evaluations give, and what follows one of these figures.
void check_figures(const Config& config) {
  const auto names = make_task(config, /*trains=*/false)->metric_names();
  if (config.scheduler.scheduler == "reduce_on_plateau") {
    check_watched("scheduler.metric", config.scheduler.plateau.metric, names);
  }
  if (config.train.early_stopping) {
    check_watched("train.early_stopping.metric", config.train.early_stopping->metric, names);
  }
}

TrainData check_data(const Config& config) {
  make_mixing(config.train.dataset);
  if (config.train.dataset.own) return check_own_data(config);
  if (config.train.dataset.has_picture_files()) return check_pictures(config);
  return config.model.type == ModelType::kCls ? check_images(config) : check_text(config);
}

}  // namespace

int run_check(const Config& config, World world) {
  check_world(config, world);
  check_results_folder(config.train.ckpt_save_dir);
  const auto device = take_compute_device(config, world);
  auto group = ProcessGroup::create(world, group_options(config.parallel));
  check_same_config(config, group);
  const auto model = make_model(without_pretrained(config.model), config.system.seed);
  freeze_parameters(config.optimizer, *model);
  const auto optimizer = make_optimizer(config.optimizer, *model, config.scheduler.lr);
  const auto resumed = resume(config, false, *model, *optimizer);
  check_same_start(resumed.state.step, resumed.from, group);
  check_figures(config);
  const TrainData data = check_data(config);
  if (world.rank != 0) return 0;
  for (const auto& line : missing_weights(config.model)) log_warn(line);
  if (const auto* distillation = std::get_if<DistillationConfig>(&config.loss)) {
    for (const auto& line : missing_weights(distillation->teacher)) {
      log_warn("loss.teacher: " + line);
    }
  }
  for (const auto& line : missing_files(config, true)) log_warn(line);
  if (!resumed.warning.empty()) log_warn(resumed.warning);
  RunPlan plan;
  plan.parameters = count_parameters(*model, true);
  plan.trainable = count_trainable(*model);
  plan.num_ranks = world.size;
  plan.num_virtual_ranks = virtual_ranks_of(config, world).total;
  plan.data_threads = data_threads(config.train.loader, workers_of(world));
  plan.train_samples = data.samples;
  plan.samples_note = data.note;
  plan = complete_plan(plan, config, state_copies(config.optimizer), data.image_elements);
  require_batch(plan.steps_per_epoch, plan.samples_a_virtual_rank, config.train.loader.batch_size);
  if (data.note.empty()) check_resumable(resumed.state, data.samples);
  if (const auto note = schedule_note(config.scheduler); !note.empty()) log_warn(note);
  fmt::print("{}\n{}", write_yaml(config.effective), describe(plan, config, device));
  return 0;
}

}  // namespace lockstep
