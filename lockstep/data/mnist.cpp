#include "lockstep/data/mnist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <memory>

#include "lockstep/base/file.h"
#include "lockstep/data/image_files.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIdxBytes = size_t{1} << 30;

[[noreturn]] void bad_idx(const std::string& file, const std::string& what) {
  throw Error(ErrorCode::kCorrupt, fmt::format("{}: {}", file, what));
}

uint32_t big_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

/// The images and the labels of one part; empty: not there.
struct PartFiles {
  fs::path images;
  fs::path labels;
};

constexpr const char* kPartNames[] = {"train", "t10k"};

/// As the official page has them, and as some collections do.
fs::path find_idx(const fs::path& folder, const std::string& part, const std::string& kind) {
  for (const char* dot : {"-", "."}) {
    for (const char* end : {"", ".gz"}) {
      fs::path file = folder / (part + "-" + kind.substr(0, kind.find('-')) + dot +
                                kind.substr(kind.find('-') + 1) + end);
      if (file_is_there(file)) return file;
    }
  }
  return {};
}

PartFiles part_in(const fs::path& folder, const char* part) {
  return {find_idx(folder, part, "images-idx3-ubyte"), find_idx(folder, part, "labels-idx1-ubyte")};
}

bool has_file(const PartFiles& part) {
  return !part.images.empty() || !part.labels.empty();
}

std::vector<const char*> parts_of(Split split) {
  if (split == Split::kTrain) return {kPartNames[0]};
  if (split == Split::kTest) return {kPartNames[1]};
  return {kPartNames[0], kPartNames[1]};
}

fs::path find_mnist(const fs::path& dir, Mnist::Kind kind) {
  const char* own = kind == Mnist::Kind::kDigits ? "MNIST/raw" : "FashionMNIST/raw";
  for (const fs::path& folder : {dir, dir / "raw", dir / own}) {
    for (const char* part : kPartNames) {
      if (has_file(part_in(folder, part))) return folder;
    }
  }
  return {};
}

/// Those parts of `split` that have a file. Errors: kNotFound if one of a part's two is missing.
std::vector<PartFiles> present_parts(const fs::path& folder, Split split) {
  std::vector<PartFiles> present;
  for (const char* name : parts_of(split)) {
    PartFiles part = part_in(folder, name);
    if (!has_file(part)) continue;
    if (part.images.empty() || part.labels.empty()) {
      throw Error(
          ErrorCode::kNotFound,
          fmt::format("{} has no {}-{}-ubyte or .gz beside {}", folder.string(), name,
                      part.images.empty() ? "images-idx3" : "labels-idx1",
                      (part.images.empty() ? part.labels : part.images).filename().string()));
    }
    present.push_back(std::move(part));
  }
  return present;
}

std::string read_idx(const fs::path& path) {
  std::string bytes = read_file(path, int64_t{kMaxIdxBytes});
  return path.extension() == ".gz" ? gunzip(bytes, path.string(), kMaxIdxBytes) : bytes;
}

}  // namespace

IdxFile parse_idx(std::string_view bytes, size_t num_extents, const std::string& file) {
  const size_t header = 4 * (1 + num_extents);
  if (bytes.size() < header) {
    bad_idx(file, fmt::format("{} bytes; the header of an idx file has {}", bytes.size(), header));
  }
  const uint32_t wanted = 0x800 + static_cast<uint32_t>(num_extents);
  if (const uint32_t mark = big_endian(bytes, 0); mark != wanted) {
    bad_idx(file, fmt::format("begins with {:#010x}; an idx file of bytes in {} dimensions begins "
                              "with {:#010x}",
                              mark, num_extents, wanted));
  }
  IdxFile idx;
  uint64_t values = 1;
  for (size_t i = 0; i < num_extents; ++i) {
    const uint32_t extent = big_endian(bytes, 4 * (i + 1));
    idx.extents.push_back(extent);
    values = std::min<uint64_t>(values, uint64_t{1} << 31) * extent;  // it cannot overflow
  }
  if (bytes.size() - header != values) {
    bad_idx(file, fmt::format("{} bytes behind its header, which says {}: {}",
                              bytes.size() - header, fmt::join(idx.extents, " x "),
                              bytes.size() - header < values ? "the file is cut short"
                                                             : "it is not this kind of file"));
  }
  idx.values = bytes.substr(header);
  return idx;
}

std::string gunzip(std::string_view bytes, const std::string& file, size_t max_bytes) {
  z_stream stream{};
  constexpr int kGzipHeader = 16;
  if (inflateInit2(&stream, kGzipHeader + MAX_WBITS) != Z_OK) {
    throw Error(ErrorCode::kInternal, "zlib cannot start");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  // zlib takes no const data, but only reads them.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string contents;
  std::string piece(size_t{1} << 18, '\0');
  for (int state = Z_OK; state != Z_STREAM_END;) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    if (state == Z_BUF_ERROR) bad_idx(file, "the compressed data are cut short");
    if (state != Z_OK && state != Z_STREAM_END) {
      bad_idx(file, fmt::format("no file of gzip, or a damaged one{}{}",
                                stream.msg != nullptr ? ": " : "",
                                stream.msg != nullptr ? stream.msg : ""));
    }
    contents.append(piece, 0, piece.size() - stream.avail_out);
    if (state == Z_STREAM_END && stream.avail_in > 0) {  // a file may consist of several
      state = inflateReset(&stream);
    }
    if (contents.size() > max_bytes) {
      bad_idx(file, fmt::format("more than {} bytes when expanded", max_bytes));
    }
  }
  return contents;
}

void Mnist::append(const NamedBytes& images, const NamedBytes& labels) {
  const IdxFile pixels = parse_idx(images.bytes, 3, images.file);
  const IdxFile numbers = parse_idx(labels.bytes, 1, labels.file);
  if (pixels.extents[1] != kShape.height || pixels.extents[2] != kShape.width) {
    bad_idx(images.file, fmt::format("images of {} x {}; allowed: {} x {}", pixels.extents[1],
                                     pixels.extents[2], kShape.height, kShape.width));
  }
  if (pixels.extents[0] == 0) bad_idx(images.file, "no image");
  if (pixels.extents[0] != numbers.extents[0]) {
    bad_idx(labels.file, fmt::format("{} labels; {} has {} images", numbers.extents[0], images.file,
                                     pixels.extents[0]));
  }
  const auto bad = std::find_if(numbers.values.begin(), numbers.values.end(),
                                [](char label) { return static_cast<uint8_t>(label) >= kClasses; });
  if (bad != numbers.values.end()) {
    bad_idx(labels.file,
            fmt::format("label {} of image {} is not in [0, {})", static_cast<uint8_t>(*bad),
                        bad - numbers.values.begin(), kClasses));
  }
  pixels_.insert(pixels_.end(), pixels.values.begin(), pixels.values.end());
  labels_.insert(labels_.end(), numbers.values.begin(), numbers.values.end());
}

Mnist Mnist::load(const fs::path& dir, Split split, Kind kind) {
  if (!file_is_there(dir)) {
    throw Error(ErrorCode::kNotFound, fmt::format("data folder {} does not exist", dir.string()));
  }
  const fs::path folder = find_mnist(dir, kind);
  const auto parts = folder.empty() ? std::vector<PartFiles>() : present_parts(folder, split);
  if (parts.empty()) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("{} holds no {}-images-idx3-ubyte, nor with .gz",
                            (folder.empty() ? dir : folder).string(), parts_of(split).front()));
  }
  Mnist data;
  for (const auto& part : parts) {
    const std::string images = read_idx(part.images), labels = read_idx(part.labels);
    const std::string images_file = part.images.string(), labels_file = part.labels.string();
    data.append({images, images_file}, {labels, labels_file});
  }
  return data;
}

int64_t count_mnist(const fs::path& dir, Split split, Mnist::Kind kind) {
  const fs::path folder = find_mnist(dir, kind);
  if (folder.empty()) return 0;
  int64_t count = 0;
  for (const auto& part : present_parts(folder, split)) {
    count += parse_idx(read_idx(part.labels), 1, part.labels.string()).extents[0];
  }
  return count;
}

std::string missing_mnist_warning(const fs::path& dir, Split split, Mnist::Kind kind) {
  const fs::path folder = find_mnist(dir, kind);
  if (split != Split::kAll || folder.empty()) return "";
  for (const char* name : kPartNames) {
    if (has_file(part_in(folder, name))) continue;
    return fmt::format("{} lacks the files of {}: only the other part is used", folder.string(),
                       name);
  }
  return "";
}

const std::vector<std::string>& mnist_names(Mnist::Kind kind) {
  static const std::vector<std::string> digits = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  static const std::vector<std::string> fashion = {
      "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
      "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  return kind == Mnist::Kind::kDigits ? digits : fashion;
}

}  // namespace lockstep::inline internal
