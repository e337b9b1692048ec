#include "lockstep/data/pictures/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <list>

#include "lockstep/base/file.h"
#include "lockstep/base/reading_note.h"
#include "lockstep/base/text.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/data/pictures/tar.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kMaxPictureBytes = int64_t{1} << 30;

/// The file's bytes. O_NONBLOCK: opening a named pipe would wait for its writer.
std::string read_whole(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (fd && ::fstat(fd.get(), &info) == 0 && S_ISFIFO(info.st_mode)) {
    throw Error(ErrorCode::kCorrupt, path.string() + " is a named pipe, and no picture");
  }
  const bool plain = fd && S_ISREG(info.st_mode) && info.st_size <= kMaxPictureBytes;
  if (!plain) return read_file(path, kMaxPictureBytes);  // with its errors
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  bytes.resize(read_at(fd.get(), 0, bytes.data(), bytes.size(), path.string()));
  return bytes;
}

/// The shards that a thread read last, so that not each sample opens one.
class OpenShards {
 public:
  /// The shard as it was indexed; valid until the next call. Errors: those of ShardFile;
  /// DataChanged.
  const ShardFile& at(const std::filesystem::path& path, const ShardState& state) {
    const auto found = std::find_if(shards_.begin(), shards_.end(), [&](const ShardFile& one) {
      return one.path().native() == path.native();
    });
    if (found != shards_.end() && found->is_still(state)) {
      shards_.splice(shards_.begin(), shards_, found);
      return *found;
    }
    if (found != shards_.end()) shards_.erase(found);
    const ShardFile& shard = shards_.emplace_front(path);
    if (shards_.size() > kMost) shards_.pop_back();
    if (shard.state() == state) return shard;
    throw DataChanged(ErrorCode::kInvalidArgument,
                      fmt::format("{} has changed since this run read its index; the next run "
                                  "reads it anew",
                                  path.string()));
  }

  void close(const ShardFile& shard) {
    shards_.remove_if([&](const ShardFile& one) { return &one == &shard; });
  }

 private:
  static constexpr size_t kMost = 8;

  std::list<ShardFile> shards_;  ///< The one that was read last comes first.
};

class PictureFiles final : public PictureSource {
 public:
  explicit PictureFiles(std::shared_ptr<const PictureIndex> index) : index_(std::move(index)) {}

  int64_t size() const override { return index_->size(); }
  int64_t label(int64_t index) const override { return index_->label(index); }
  std::string where(int64_t index) const override { return index_->where(index); }
  Undecoded read(int64_t index) const override {
    return [bytes = read_bytes(index_->path(index), index_->part(index))](
               const ocr::ChoosePart& choose) { return decode_bytes(bytes, choose); };
  }

 private:
  std::shared_ptr<const PictureIndex> index_;
};

std::string bytes_of_part(const ShardFile& shard, const FilePart& part) {
  std::string bytes(part.bytes, '\0');
  if (shard.read(part.begin, bytes.data(), bytes.size()) == bytes.size()) return bytes;
  throw Error(ErrorCode::kCorrupt, "the archive has become shorter");
}

}  // namespace

cv::Mat decode_bytes(const std::string& bytes, const ocr::ChoosePart& choose) {
  return ocr::decode_part({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, choose);
}

cv::Mat read_picture(const std::filesystem::path& path) {
  try {
    return decode_bytes(read_bytes(path, std::nullopt), [](cv::Size size) {
      return ocr::PicturePart{{{0, 0}, size}};
    });
  } catch (const Error& error) {
    throw Error(error.code(), with_place(path.string(), error.what()));
  }
}

std::string read_bytes(const std::filesystem::path& path, const std::optional<FilePart>& part) {
  const ReadingNote note(path.string());
  if (!part) return read_whole(path);
  thread_local OpenShards open_shards;
  const ShardFile& shard = open_shards.at(path, part->shard);
  try {
    return bytes_of_part(shard, *part);
  } catch (const Error&) {  // a file server may have dropped a file that was open
    open_shards.close(shard);
    return bytes_of_part(open_shards.at(path, part->shard), *part);
  }
}

std::shared_ptr<const PictureSource> picture_files(std::shared_ptr<const PictureIndex> index) {
  return std::make_shared<PictureFiles>(std::move(index));
}

PictureReader::PictureReader(std::shared_ptr<const PictureSource> source, PicturePipeline pipeline,
                             BadSample bad, uint64_t seed)
    : source_(std::move(source)), pipeline_(std::move(pipeline)), bad_(bad), seed_(seed) {}

PictureSample PictureReader::make(int64_t epoch, int64_t index, int64_t key) const {
  try {
    return {pipeline_.apply(source_->read(index), epoch, key), index, source_->label(index)};
  } catch (const DataChanged&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.code(), with_place(source_->where(index), error.what()));
  } catch (const TransformFailed& error) {
    throw TransformFailed(with_place(source_->where(index), error.what()));
  }
}

UsableSamples<PictureSample> PictureReader::read(int64_t epoch, std::span<const int64_t> indices,
                                                 std::span<const int64_t> keys) const {
  return make_usable<PictureSample>(
      {indices, keys}, source_->size(), bad_, seed_, epoch,
      [&](int64_t index, int64_t key) { return make(epoch, index, key); },
      [&](const PictureSample& sample) { return source_->where(sample.index); });
}

}  // namespace lockstep::inline internal
