#pragma once
// Pictures of a data set, read and transformed for batches. Without libtorch, so that sanitizers
// reach the code of its threads.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/pictures/index.h"
#include "lockstep/data/pictures/pipeline.h"
#include "lockstep/data/usable_samples.h"

namespace lockstep::inline internal {

/// The chosen part of the picture in a file's bytes. Errors: those of ocr::decode_part().
cv::Mat decode_bytes(const std::string& bytes, const ocr::ChoosePart& choose);

/// The pixels of a file: 8-bit RGB. Grey and palettes become RGB, transparency is dropped, and
/// EXIF's orientation is ignored: so has torchvision's ImageFolder with Pillow. The contents decide
/// about the format, not the name. Errors: kNotFound, kIo, kCorrupt, which name the file.
cv::Mat read_picture(const std::filesystem::path& path);

/// The bytes of a file, or of a part of a shard. The thread keeps the eight shards open that it
/// read last. Errors: kNotFound, kIo; DataChanged if the shard is no longer as it was indexed.
std::string read_bytes(const std::filesystem::path& path, const std::optional<FilePart>& part);

struct PictureSample {
  MadePicture picture;
  int64_t index = 0;
  int64_t label = 0;
};

/// Makes the samples of batches. Read-only once made: any number of threads may read.
class PictureReader {
 public:
  PictureReader(std::shared_ptr<const PictureIndex> index, PicturePipeline pipeline, BadSample bad,
                uint64_t seed);

  const PictureIndex& index() const { return *index_; }
  const PicturePipeline& pipeline() const { return pipeline_; }

  /// Errors: kCorrupt if a picture and its ten replacements are unusable; DataChanged;
  /// TransformFailed, naming the picture.
  UsableSamples<PictureSample> read(int64_t epoch, std::span<const int64_t> indices) const;

 private:
  PictureSample make(int64_t epoch, int64_t index) const;

  std::shared_ptr<const PictureIndex> index_;
  PicturePipeline pipeline_;
  BadSample bad_;
  uint64_t seed_;
};

}  // namespace lockstep::inline internal
