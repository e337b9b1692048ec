#pragma once
// Data sets of pictures in files, as configured.

#include <memory>

#include "lockstep/data/picture_batch.h"
#include "lockstep/train/config/config.h"

namespace lockstep {

/// Errors: kInvalidArgument if train.dataset and eval.dataset are of different kinds (pictures in
/// files, each type of small images, registered ones): their classes would have other numbers.
void check_same_kind(const Config& config);

/// The classes of the training data, which those of evaluation must have, too. A folder's files are
/// not looked at. Errors: those of folder_classes() and read_list(); kInvalidArgument if there are
/// more than model.head.num_classes.
PictureClasses picture_classes(const Config& config);

/// The pictures of section `train` or `eval`. Errors: the same, and those of index_folder().
std::shared_ptr<const PictureIndex> make_picture_index(const Config& config, bool training);

/// Errors: kInvalidArgument, with the place of the item in the configuration.
PicturePipeline make_picture_pipeline(const DatasetConfig& dataset, int64_t seed);

std::unique_ptr<const BatchMaker> make_picture_batches(const Config& config, bool training,
                                                       std::shared_ptr<const PictureIndex> index);

}  // namespace lockstep
