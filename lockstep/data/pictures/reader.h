#pragma once
// Pictures of a data set, read and transformed for batches. Without libtorch, so that sanitizers
// reach the code of its threads.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

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

/// Labelled pictures 0 .. size()-1, as they are before any transform. Read-only once made: any
/// number of threads may read.
class PictureSource {
 public:
  virtual ~PictureSource() = default;

  virtual int64_t size() const = 0;
  virtual int64_t label(int64_t index) const = 0;
  /// For messages: a file's path, "SHARD: MEMBER", or "data/cifar10: image 17".
  virtual std::string where(int64_t index) const = 0;
  /// Errors: those of read_bytes().
  virtual Undecoded read(int64_t index) const = 0;
};

/// Those of an index.
std::shared_ptr<const PictureSource> picture_files(std::shared_ptr<const PictureIndex> index);

struct PictureSample {
  MadePicture picture;
  int64_t index = 0;
  int64_t label = 0;
};

/// Makes the samples of batches. Read-only once made: any number of threads may read.
class PictureReader {
 public:
  PictureReader(std::shared_ptr<const PictureSource> source, PicturePipeline pipeline,
                BadSample bad, uint64_t seed);
  PictureReader(std::shared_ptr<const PictureIndex> index, PicturePipeline pipeline, BadSample bad,
                uint64_t seed)
      : PictureReader(picture_files(std::move(index)), std::move(pipeline), bad, seed) {}

  const PictureSource& source() const { return *source_; }
  const PicturePipeline& pipeline() const { return pipeline_; }

  /// `keys`: see DrawnSamples. Errors: kCorrupt if a picture and its ten replacements are unusable;
  /// DataChanged; TransformFailed, naming the picture.
  UsableSamples<PictureSample> read(int64_t epoch, std::span<const int64_t> indices,
                                    std::span<const int64_t> keys = {}) const;

 private:
  PictureSample make(int64_t epoch, int64_t index, int64_t key) const;

  std::shared_ptr<const PictureSource> source_;
  PicturePipeline pipeline_;
  BadSample bad_;
  uint64_t seed_;
};

}  // namespace lockstep::inline internal
