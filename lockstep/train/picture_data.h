#pragma once
// A classifier's data, as configured: a registered data set, pictures in files or small images.

#include "lockstep/data/pictures/picture_batches.h"
#include "lockstep/data/small_images.h"
#include "lockstep/data/transforms.h"
#include "lockstep/train/setup.h"

namespace lockstep::inline internal {

/// The data set of small images that `config` selects: neither a registered one nor files of
/// pictures.
const SmallImages& small_images_of(const DatasetConfig& config);

/// Of pictures in files. Errors: kInvalidArgument, with the place of the first item in the
/// configuration.
PicturePipeline make_picture_pipeline(const DatasetConfig& dataset, int64_t seed);

/// Of small images: ImageTransform if it takes the steps, else the pipeline of pictures. The steps
/// alone decide. `stored`: the shape of each image. Errors: as above.
ImagePipeline make_small_image_pipeline(const DatasetConfig& dataset, ImageShape stored,
                                        int64_t seed);
/// Of the network's input.
ImageShape output_shape(const ImagePipeline& pipeline);

/// See TaskParts.
std::unique_ptr<const BatchMaker> make_class_batches(const Config& config, bool training,
                                                     PixelForm form, DataParts& parts);
CheckedData check_class_data(const Config& config);
/// Of small images: see SmallImages::missing.
std::vector<std::string> missing_class_files(const Config& config, bool with_eval);

}  // namespace lockstep::inline internal
