#include "lockstep/train/picture_data.h"

#include <fmt/format.h>

#include "lockstep/base/hash.h"
#include "lockstep/data/pictures/folder.h"
#include "lockstep/data/pictures/list.h"
#include "lockstep/data/pictures/shards.h"
#include "lockstep/error.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/setup.h"

namespace lockstep {
namespace {

/// Errors of `body` begin with the place of the data set in the configuration.
template <typename Body>
auto at_dataset(const DatasetConfig& dataset, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.code(), dataset.where + ": " + error.what());
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
                   : read_list(file, {dataset.data_dirs.front(), num_classes, classes});
  index.keep(samples_used(dataset, index.size()));
  return index;
}

}  // namespace

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

PictureClasses picture_classes(const Config& config) {
  const DatasetConfig& train = config.train.dataset;
  if (train.type == "WebDataset") return {config.model.head.num_classes};
  return at_dataset(train, [&] {
    auto classes = train.type == "ImageFolderDataset"
                       ? folder_classes(train.data_dirs.front())
                       : index_of(config, train, std::nullopt).classes();
    check_classes(classes.count, config.model.head.num_classes);
    return classes;
  });
}

std::shared_ptr<const PictureIndex> make_picture_index(const Config& config, bool training) {
  const DatasetConfig& dataset = training ? config.train.dataset : config.eval->dataset;
  std::optional<PictureClasses> classes;
  if (!training) classes = picture_classes(config);
  return at_dataset(dataset, [&] {
    auto index = std::make_shared<PictureIndex>(index_of(config, dataset, classes));
    check_classes(index->classes().count, config.model.head.num_classes);
    return std::shared_ptr<const PictureIndex>(std::move(index));
  });
}

PicturePipeline make_picture_pipeline(const DatasetConfig& dataset, int64_t seed) {
  std::string where;
  try {
    std::vector<PictureStep> steps;
    for (const auto& item : dataset.transforms) {
      where = item.where + ": ";
      if (!is_mixing(item.name)) steps.push_back(make_picture_step({item.name, item.args}));
    }
    if (!dataset.transforms.empty()) where = dataset.transforms.front().where + ": ";
    return PicturePipeline(std::move(steps), static_cast<uint64_t>(seed), dataset.reduced_decoding);
  } catch (const Error& error) {
    throw Error(error.code(), where + error.what());
  }
}

std::unique_ptr<const BatchMaker> make_picture_batches(const Config& config, bool training,
                                                       std::shared_ptr<const PictureIndex> index) {
  const DatasetConfig& dataset = training ? config.train.dataset : config.eval->dataset;
  const int64_t seed = config.system.seed;
  const BadSample bad = training ? BadSample::kReplaced : BadSample::kLeftOut;
  return picture_batches(PictureReader(std::move(index), make_picture_pipeline(dataset, seed), bad,
                                       static_cast<uint64_t>(seed)),
                         bad);
}

}  // namespace lockstep
