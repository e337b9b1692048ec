#include "lockstep/train/picture_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>
#include <variant>

#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/data/batches.h"
#include "lockstep/data/pictures/buffer_order.h"
#include "lockstep/data/pictures/folder.h"
#include "lockstep/data/pictures/list.h"
#include "lockstep/data/pictures/memory_pictures.h"
#include "lockstep/data/pictures/shards.h"
#include "lockstep/error.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/own_data.h"
#include "lockstep/train/sample_weights.h"
#include "lockstep/train/try_transforms.h"

namespace lockstep::inline internal {
namespace {

/// What `build` makes of the steps of dataset.transforms. Errors: its own, with the place of the
/// first one in the configuration.
template <typename Build>
auto build_of(const DatasetConfig& dataset, const Build& build) {
  std::vector<PictureStep> steps;
  for (const auto& item : dataset.transforms) steps.push_back(item.step);
  try {
    return build(std::move(steps));
  } catch (const Error& error) {
    if (dataset.transforms.empty()) throw;
    throw Error(error.code(), dataset.transforms.front().where + ": " + error.what());
  }
}

}  // namespace

const SmallImages& small_images_of(const DatasetConfig& config) {
  return small_images(config.type, config.coarse);
}

PicturePipeline make_picture_pipeline(const DatasetConfig& dataset, int64_t seed) {
  return build_of(dataset, [&](std::vector<PictureStep> steps) {
    return PicturePipeline(std::move(steps), static_cast<uint64_t>(seed), dataset.reduced_decoding);
  });
}

ImagePipeline make_small_image_pipeline(const DatasetConfig& dataset, ImageShape stored,
                                        int64_t seed) {
  const auto key = static_cast<uint64_t>(seed);
  return build_of(dataset, [&](std::vector<PictureStep> steps) -> ImagePipeline {
    const cv::Size size(static_cast<int>(stored.width), static_cast<int>(stored.height));
    if (ImageTransform::takes(steps)) {
      check_sizes(steps, size);
      return ImageTransform(std::move(steps), stored, key, dataset.channels);
    }
    const int64_t channels = network_channels(stored, dataset.channels);
    return PicturePipeline(std::move(steps), key, false, PicturesAlike{size, channels});
  });
}

ImageShape output_shape(const ImagePipeline& pipeline) {
  if (const auto* transform = std::get_if<ImageTransform>(&pipeline)) return transform->output();
  const auto& pictures = std::get<PicturePipeline>(pipeline);
  const cv::Size size = pictures.output().value();
  return {pictures.channels(), size.height, size.width};
}

namespace {

/// The number of leading records of `size` that dataset.sample_ratio selects; at least one.
int64_t samples_used(const DatasetConfig& dataset, int64_t size) {
  return std::max<int64_t>(1,
                           std::llround(static_cast<double>(size) * dataset.sample_ratios.front()));
}

/// The split of dataset.usage.
Split split_of(const DatasetConfig& dataset) {
  if (dataset.usage == "all") return Split::kAll;
  return dataset.usage == "train" ? Split::kTrain : Split::kTest;
}

/// Errors of `body` begin with the place of the data in the configuration.
template <typename Body>
auto at_dataset(const DatasetConfig& dataset, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.code(), dataset.source_where + ": " + error.what());
  }
}

/// One file for each folder, beside the weights.
std::filesystem::path listing_of(const std::filesystem::path& folder) {
  const std::string path = std::filesystem::absolute(folder).lexically_normal().string();
  Hash hash;
  hash.update(path.data(), path.size());
  return weights_folder().parent_path() / "pictures" / hash.hex().substr(0, 32);
}

PictureIndex index_of(const Config& config, const DatasetConfig& dataset,
                      const std::optional<PictureClasses>& classes) {
  const double ratio = dataset.sample_ratios.front();
  if (dataset.type == "ImageFolderDataset") {
    const auto& folder = dataset.data_dirs.front();
    const FolderOptions options{dataset.held_out, split_of(dataset), ratio, listing_of(folder)};
    return index_folder(folder, options, classes);
  }
  const int64_t num_classes = config.model.head.num_classes;
  const auto& file = dataset.label_files.front();
  auto index = dataset.type == "WebDataset"
                   ? index_shards(file.string(), classes.value_or(PictureClasses{num_classes}),
                                  listing_of(file))
                   : read_list(file, {dataset.data_dirs.front(), num_classes, classes,
                                      listing_of(file).parent_path()});
  index.keep(samples_used(dataset, index.size()));
  return index;
}

/// Errors: kInvalidArgument if train.dataset and eval.dataset are of different kinds (pictures in
/// files, each type of small images, registered ones): their classes would have other numbers.
void check_same_kind(const Config& config) {
  const DatasetConfig& train = config.train.dataset;
  const DatasetConfig& eval = config.eval->dataset;
  const bool same_files = train.has_picture_files() == eval.has_picture_files();
  const bool both_own = train.own && eval.own;
  const bool same_images = train.type == eval.type && train.coarse == eval.coarse;
  if (both_own || (same_files && (train.has_picture_files() || same_images))) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: eval.dataset.type is {}{}, train.dataset.type is {}{}: their classes "
                  "have other numbers",
                  eval.where, eval.type, eval.coarse ? " with coarse labels" : "", train.type,
                  train.coarse ? " with coarse labels" : ""));
}

/// The classes of the training data, which those of evaluation must have, too. A folder's files are
/// not looked at. Errors: those of folder_classes() and read_list(); kInvalidArgument if there are
/// more than model.head.num_classes.
PictureClasses picture_classes(const Config& config) {
  const DatasetConfig& train = config.train.dataset;
  if (train.type == "WebDataset") return {config.model.head.num_classes};
  return at_dataset(train, [&] {
    auto classes = train.type == "ImageFolderDataset"
                       ? folder_classes(train.data_dirs.front())
                       : index_of(config, train, std::nullopt).classes();
    check_classes(classes.count, config.model);
    return classes;
  });
}

/// A list or shards of one class alone, where there should be more; a folder has its own warning.
void warn_of_one_label(PictureIndex& index, const DatasetConfig& dataset, int64_t num_classes) {
  if (dataset.type == "ImageFolderDataset" || index.size() < 2 || num_classes == 1) return;
  for (int64_t i = 1; i < index.size(); ++i) {
    if (index.label(i) != index.label(0)) return;
  }
  const auto& names = index.classes().names;
  const int64_t label = index.label(0);
  index.add_warning(fmt::format(
      "{}: all {} pictures are of one class, {}", dataset.label_files.front().string(),
      index.size(),
      names.empty() ? std::to_string(label) : without_controls(names[static_cast<size_t>(label)])));
}

/// The pictures of section `train` or `eval`. Errors: the same, and those of index_folder().
std::shared_ptr<const PictureIndex> make_picture_index(const Config& config, bool training) {
  const DatasetConfig& dataset = training ? config.train.dataset : config.eval->dataset;
  std::optional<PictureClasses> classes;
  if (!training) classes = picture_classes(config);
  return at_dataset(dataset, [&] {
    auto index = std::make_shared<PictureIndex>(index_of(config, dataset, classes));
    check_classes(index->classes().count, config.model);
    if (training) warn_of_one_label(*index, dataset, config.model.head.num_classes);
    return std::shared_ptr<const PictureIndex>(std::move(index));
  });
}

/// Shards in buffer_order(). The digest has the buffer, because an epoch that goes on with another
/// one is in another order.
void set_buffer_order(std::shared_ptr<const PictureIndex> index, int64_t buffer, DataParts& parts) {
  const std::array<uint64_t, 2> both = {parts.digest, static_cast<uint64_t>(buffer)};
  Hash hash;
  hash.update(both.data(), sizeof(both));
  parts.digest = first_64_bits(hash.hex());
  parts.order = [index = std::move(index), buffer](int64_t n, int64_t seed) {
    return buffer_order(index->shard_firsts(), n, buffer, seed);
  };
}

/// Section `train` or `eval` of a configuration.
struct DataSection {
  const DatasetConfig& dataset;
  uint64_t seed;
  BadSample bad;

  DataSection(const Config& config, bool training)
      : dataset(training ? config.train.dataset : config.eval->dataset),
        seed(static_cast<uint64_t>(config.system.seed)),
        bad(training ? BadSample::kReplaced : BadSample::kLeftOut) {}
};

/// Whether a CUDA device gets these images as bytes.
bool can_be_bytes(const DatasetConfig& dataset, const PicturePipeline& pipeline) {
  return pipeline.ends_with_bytes() && !dataset.mixing.any();
}

std::unique_ptr<const BatchMaker> batches_of_pictures(const DataSection& section, PixelForm form,
                                                      std::shared_ptr<const PictureSource> source,
                                                      PicturePipeline pipeline) {
  if (!can_be_bytes(section.dataset, pipeline)) form = PixelForm::kFloats;
  return picture_batches(
      PictureReader(std::move(source), std::move(pipeline), section.bad, section.seed), section.bad,
      form);
}

std::unique_ptr<const BatchMaker> make_picture_batches(const Config& config, bool training,
                                                       PixelForm form,
                                                       std::shared_ptr<const PictureIndex> index) {
  const DataSection section(config, training);
  return batches_of_pictures(section, form, picture_files(std::move(index)),
                             make_picture_pipeline(section.dataset, config.system.seed));
}

std::shared_ptr<const ImageDataset> load_images(const Config& config,
                                                const DatasetConfig& dataset) {
  auto data = small_images_of(dataset).load(dataset.data_dirs.front(), split_of(dataset));
  check_classes(data->num_classes(), config.model);
  return data;
}

std::unique_ptr<const BatchMaker> make_image_batches(const Config& config, bool training,
                                                     PixelForm form,
                                                     std::shared_ptr<const ImageDataset> data) {
  const DataSection section(config, training);
  auto pipeline = make_small_image_pipeline(section.dataset, data->shape(), config.system.seed);
  if (auto* transform = std::get_if<ImageTransform>(&pipeline)) {
    return image_batches(std::move(data), std::move(*transform));
  }
  const int64_t used = samples_used(section.dataset, data->size());
  const std::string name = section.dataset.data_dirs.front().string();
  return batches_of_pictures(section, form, memory_pictures(std::move(data), used, name),
                             std::get<PicturePipeline>(std::move(pipeline)));
}

int64_t count_images(const DatasetConfig& config) {
  return small_images_of(config).count(config.data_dirs.front(), split_of(config));
}

CheckedData check_images(const Config& config) {
  const SmallImages& images = small_images_of(config.train.dataset);
  check_classes(images.num_classes, config.model);
  CheckedData data;
  const auto pipeline =
      make_small_image_pipeline(config.train.dataset, images.shape, config.system.seed);
  data.image_elements = output_shape(pipeline).numel();
  const auto* pictures = std::get_if<PicturePipeline>(&pipeline);
  if (pictures != nullptr && can_be_bytes(config.train.dataset, *pictures)) {
    data.byte_elements = data.image_elements;
  }
  int64_t eval_count = 0;
  if (config.eval) {
    check_same_kind(config);
    make_small_image_pipeline(config.eval->dataset, images.shape, config.system.seed);
    eval_count = count_images(config.eval->dataset);
  }
  const int64_t count = count_images(config.train.dataset);
  const int64_t official = images.official_count(split_of(config.train.dataset));
  data.samples = samples_used(config.train.dataset, count > 0 ? count : official);
  if (count == 0) data.note = ", the official number: the data are not there yet";
  data.classes = images.class_names(config.train.dataset.data_dirs.front());
  const auto make = [](const Config& tried, bool training) {
    const auto& dataset = training ? tried.train.dataset : tried.eval->dataset;
    return make_image_batches(tried, training, PixelForm::kFloats, load_images(tried, dataset));
  };
  data.warnings = try_own_transforms(config, {count > 0, eval_count > 0}, make);
  return data;
}

CheckedData check_own_data(const Config& config) {
  const auto train = make_own_dataset(config, true);
  train->weights();
  // A recipe has the section in any case, but perhaps no data for it.
  if (config.eval && (config.system.val_while_train || !config.model.task)) {
    check_same_kind(config);
    make_own_dataset(config, false);
  }
  const int64_t first = 0;
  const Batch batch = train->make({0, {&first, 1}, 1});
  int64_t elements = 0;
  for (const auto& input : batch.inputs()) elements += input.numel();
  return {train->size(), "", elements};
}

CheckedData check_pictures(const Config& config) {
  CheckedData data;
  const int64_t seed = config.system.seed;
  const auto pipeline = make_picture_pipeline(config.train.dataset, seed);
  const auto size = pipeline.output();
  data.image_elements = size ? int64_t{3} * size->area() : 0;
  if (can_be_bytes(config.train.dataset, pipeline)) data.byte_elements = data.image_elements;
  std::vector<std::string> warnings;
  const auto count = [&](bool training) {
    const auto index = make_picture_index(config, training);
    warnings.insert(warnings.end(), index->warnings().begin(), index->warnings().end());
    if (training) data.classes = index->classes().names;
    return index->size();
  };
  std::string why;
  const auto pictures = count_if_there([&] { return count(true); }, why);
  data.samples = pictures.value_or(config.train.loader.batch_size);
  if (!pictures) data.note = fmt::format(", a guess, because: {}", why);
  bool evaluates = false;
  if (config.eval) {
    check_same_kind(config);
    make_picture_pipeline(config.eval->dataset, seed);
    evaluates = pictures && count_if_there([&] { return count(false); }, why).has_value();
    if (pictures && !evaluates) data.note += fmt::format("; to evaluate: {}", why);
  }
  const auto make = [](const Config& tried, bool training) {
    return make_picture_batches(tried, training, PixelForm::kFloats,
                                make_picture_index(tried, training));
  };
  data.warnings = try_own_transforms(config, {pictures.has_value(), evaluates}, make);
  data.warnings.insert(data.warnings.begin(), warnings.begin(), warnings.end());
  return data;
}

/// The names of postprocess.label_list, if any, replace those of the data.
void take_given_names(const Config& config, std::vector<std::string>& classes) {
  const auto& given = std::get<ClassNames>(config.postprocess).label_list;
  if (!given.empty()) classes = given;
}

}  // namespace

std::unique_ptr<const BatchMaker> make_class_batches(const Config& config, bool training,
                                                     PixelForm form, DataParts& parts) {
  if (!training) check_same_kind(config);
  const auto& dataset = training ? config.train.dataset : config.eval->dataset;
  const auto balance = [&](const std::function<int64_t(int64_t)>& label) {
    if (!training || !config.train.loader.balanced) return;
    draw_by_weights(balanced_weights(parts.samples, label), parts);
  };
  std::unique_ptr<const BatchMaker> maker;
  if (dataset.own) {
    maker = make_own_dataset(config, training);
    parts.samples = maker->size();
  } else if (dataset.has_picture_files()) {
    const auto index = make_picture_index(config, training);
    parts.samples = index->size();
    parts.warnings = index->warnings();
    parts.digest = index->digest();
    if (dataset.shuffle_buffer > 0) set_buffer_order(index, dataset.shuffle_buffer, parts);
    balance([&](int64_t sample) { return index->label(sample); });
    parts.classes = index->classes().names;
    maker = make_picture_batches(config, training, form, index);
  } else {
    const auto data = load_images(config, dataset);
    parts.samples = samples_used(dataset, data->size());
    balance([&](int64_t sample) { return data->label(sample); });
    parts.classes = small_images_of(dataset).class_names(dataset.data_dirs.front());
    maker = make_image_batches(config, training, form, data);
  }
  take_given_names(config, parts.classes);
  return maker;
}

CheckedData check_class_data(const Config& config) {
  const auto& dataset = config.train.dataset;
  CheckedData data = dataset.own                   ? check_own_data(config)
                     : dataset.has_picture_files() ? check_pictures(config)
                                                   : check_images(config);
  take_given_names(config, data.classes);
  return data;
}

std::vector<std::string> missing_class_files(const Config& config, bool with_eval) {
  std::vector<std::string> lines;
  const auto look = [&](const DatasetConfig& dataset) {
    if (!dataset.has_small_images()) return;
    auto line = small_images_of(dataset).missing(dataset.data_dirs.front(), split_of(dataset));
    if (!line.empty()) lines.push_back(std::move(line));
  };
  look(config.train.dataset);
  if (with_eval && config.eval) look(config.eval->dataset);
  return lines;
}

}  // namespace lockstep::inline internal
