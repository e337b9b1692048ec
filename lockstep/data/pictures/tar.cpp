#include "lockstep/data/pictures/tar.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/base/number.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kMaxExtraBytes = 1 << 20;  // of a long name, or of PAX's records

/// A field of the header.
struct Field {
  size_t at;
  size_t size;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kMagic{257, 6}, kPrefix{345, 155};
constexpr size_t kType = 156;

std::string_view raw(std::string_view header, Field field) {
  return header.substr(field.at, field.size);
}

/// Up to its first zero byte.
std::string_view text(std::string_view header, Field field) {
  const auto all = raw(header, field);
  return all.substr(0, std::min(all.find('\0'), all.size()));
}

/// Octal digits between blanks; or, with the highest bit of the first byte, a number of base 256.
std::optional<uint64_t> number(std::string_view header, Field field) {
  std::string_view digits = raw(header, field);
  if (static_cast<uint8_t>(digits[0]) == 0x80) {
    uint64_t value = 0;
    for (const char digit : digits.substr(1)) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | static_cast<uint8_t>(digit);
    }
    return value;
  }
  digits = digits.substr(0, std::min(digits.find('\0'), digits.size()));
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  if (digits.empty()) return 0;  // some archivers leave fields out
  return as_number<uint64_t>(digits, 8);
}

/// The sum of all bytes, with blanks in the place of the sum. Some old archivers added signed ones.
bool has_its_checksum(std::string_view header) {
  const auto written = number(header, kChecksum);
  int64_t plain = 0, with_signs = 0;
  for (size_t i = 0; i < header.size(); ++i) {
    const bool of_sum = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
    const char byte = of_sum ? ' ' : header[i];
    plain += static_cast<uint8_t>(byte);
    with_signs += static_cast<int8_t>(byte);
  }
  return written &&
         (static_cast<int64_t>(*written) == plain || static_cast<int64_t>(*written) == with_signs);
}

std::string name_in(std::string_view header) {
  using namespace std::string_view_literals;
  const std::string name(text(header, kName));
  const bool posix = raw(header, kMagic) == "ustar\0"sv;
  const auto prefix = posix ? text(header, kPrefix) : std::string_view();
  return prefix.empty() ? name : std::string(prefix) + "/" + name;
}

/// The program that compressed a file with these first bytes, and the one that unpacks it.
struct Compression {
  std::string_view begin;
  const char* name;
  const char* unpack;
};

const Compression* compression_of(std::string_view bytes) {
  using namespace std::string_view_literals;
  static constexpr std::array<Compression, 4> kAll = {{
      {"\x1f\x8b"sv, "gzip", "gunzip"},
      {"\x28\xb5\x2f\xfd"sv, "zstd", "unzstd"},
      {"\xfd\x37\x7a\x58\x5a\0"sv, "xz", "unxz"},
      {"BZh"sv, "bzip2", "bunzip2"},
  }};
  const auto found = std::find_if(kAll.begin(), kAll.end(),
                                  [&](const auto& one) { return bytes.starts_with(one.begin); });
  return found == kAll.end() ? nullptr : &*found;
}

class TarWalk {
 public:
  TarWalk(const TarBytes& archive, const std::function<void(const TarMember&)>& found)
      : archive_(archive), found_(found) {}

  void run() {
    while (read_header()) {
      const char type = header_[kType];
      if (type == 'L') {
        long_name_ = extra();
        long_name_->resize(std::min(long_name_->find('\0'), long_name_->size()));
      } else if (type == 'x' || type == 'X') {
        read_records(extra());
      } else {
        read_member(type);
      }
    }
  }

 private:
  [[noreturn]] void refuse(uint64_t at, const std::string& what) const {
    throw Error(ErrorCode::kCorrupt, fmt::format("{}: byte {}: {}", archive_.name, at, what));
  }

  /// Moves to the next header; false at the end.
  bool read_header() {
    header_at_ = next_;
    const size_t there = archive_.read(header_at_, block_.data(), block_.size());
    header_ = std::string_view(block_.data(), std::min<size_t>(there, kBlock));
    if (header_at_ == 0) refuse_compressed();
    if (there < kBlock) {
      refuse(header_at_, there == 0 ? "the archive ends without its end mark: it is cut off"
                                    : "the archive ends within a header: it is cut off");
    }
    head_ = std::string_view(block_.data() + kBlock, there - kBlock);
    if (header_.find_first_not_of('\0') == std::string_view::npos) return false;
    if (!has_its_checksum(header_))
      refuse(header_at_, "no header of a tar archive, or a damaged one");
    const auto size = number(header_, kSize);
    if (!size) refuse(header_at_, "a size that is no number");
    size_ = *size;
    begin_ = header_at_ + kBlock;
    return true;
  }

  /// An archive that is not compressed may begin with the same bytes, as its first member's name.
  void refuse_compressed() const {
    const auto* compression = compression_of(header_);
    if (compression == nullptr || (header_.size() == kBlock && has_its_checksum(header_))) return;
    throw Error(
        ErrorCode::kCorrupt,
        fmt::format("{} is compressed by {}, and its samples have no place in it: unpack it "
                    "({})",
                    archive_.name, compression->name, compression->unpack));
  }

  /// Passes over the contents.
  void pass(const std::string& name) {
    if (size_ > archive_.size - begin_) {
      refuse(header_at_, fmt::format("{} has {} bytes, of which the archive has {}: it is cut off",
                                     name, size_, archive_.size - begin_));
    }
    next_ = begin_ + (size_ + kBlock - 1) / kBlock * kBlock;
  }

  /// The contents of a header that belongs to the next one.
  std::string extra() {
    if (size_ > kMaxExtraBytes) {
      refuse(header_at_,
             fmt::format("a name or record of {} bytes; allowed: {}", size_, kMaxExtraBytes));
    }
    pass("a name or record");
    std::string contents(size_, '\0');
    contents.resize(archive_.read(begin_, contents.data(), contents.size()));
    return contents;
  }

  /// PAX: "LENGTH KEY=VALUE\n" one after another; LENGTH is that of all of it.
  void read_records(const std::string& records) {
    for (size_t at = 0; at < records.size();) {
      size_t length = 0;
      const char* from = records.data() + at;
      const char* end = records.data() + records.size();
      const auto [stop, error] = std::from_chars(from, end, length);
      const auto digits = static_cast<size_t>(stop - from);
      const bool whole = error == std::errc() && length > digits + 1 &&
                         length <= records.size() - at && *stop == ' ' &&
                         records[at + length - 1] == '\n';
      if (!whole) refuse(begin_ + at, "a PAX record that is damaged");
      take_record(std::string_view(records).substr(at + digits + 1, length - digits - 2));
      at += length;
    }
  }

  void take_record(std::string_view record) {
    const size_t equals = std::min(record.find('='), record.size());
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(std::min(equals + 1, record.size()));
    if (key == "path") long_name_ = std::string(value);
    if (key.starts_with("GNU.sparse.")) refuse(header_at_, "a sparse file, which is not supported");
    if (key != "size") return;
    long_size_ = as_number<uint64_t>(value);
    if (!long_size_) refuse(begin_, "a size that is no number");
  }

  void read_member(char type) {
    const std::string name = std::exchange(long_name_, std::nullopt).value_or(name_in(header_));
    size_ = std::exchange(long_size_, std::nullopt).value_or(size_);
    if (type == 'S') refuse(header_at_, "a sparse file, which is not supported");
    if (type >= '1' && type <= '6') size_ = 0;  // links, devices and folders have no contents
    pass(name);
    const bool regular = (type == '0' || type == '\0' || type == '7') && !name.ends_with('/');
    if (regular) found_({name, begin_, size_, head_.substr(0, std::min(size_, head_.size()))});
  }

  const TarBytes& archive_;
  const std::function<void(const TarMember&)>& found_;
  std::array<char, 2 * kBlock> block_{};
  std::string_view header_;
  std::string_view head_;  ///< The bytes behind the header.
  uint64_t header_at_ = 0;
  uint64_t begin_ = 0;  ///< Of the contents.
  uint64_t size_ = 0;   ///< Of the contents.
  uint64_t next_ = 0;   ///< Of the next header.
  std::optional<std::string> long_name_;
  std::optional<uint64_t> long_size_;
};

}  // namespace

void for_each_tar_member(const TarBytes& archive,
                         const std::function<void(const TarMember& member)>& found) {
  TarWalk(archive, found).run();
}

std::string tar_name_before(const TarBytes& archive, uint64_t begin) {
  std::array<char, kBlock> block{};
  if (begin < kBlock || archive.read(begin - kBlock, block.data(), kBlock) < kBlock) return "";
  const std::string_view header(block.data(), kBlock);
  return has_its_checksum(header) ? name_in(header) : "";
}

namespace {

std::pair<uint64_t, uint64_t> file_id(const struct stat& status) {
  return {static_cast<uint64_t>(status.st_dev), static_cast<uint64_t>(status.st_ino)};
}

ShardState shard_state(const struct stat& status) {
  return {static_cast<uint64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

}  // namespace

ShardFile::ShardFile(std::filesystem::path path)
    : path_(std::move(path)), fd_(open_to_read(path_)) {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) {
    throw Error(ErrorCode::kIo, fmt::format("read {}: {}", path_.string(), std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} is no file", path_.string()));
  }
  id_ = file_id(status);
  state_ = shard_state(status);
}

bool ShardFile::is_still(const ShardState& state) const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return false;
  return file_id(status) == id_ && shard_state(status) == state;
}

size_t ShardFile::read(uint64_t at, char* to, size_t count) const {
  return read_at(fd_.get(), at, to, count, path_.string());
}

TarBytes ShardFile::tar() const {
  return {state_.size, [this](uint64_t at, char* to, size_t count) { return read(at, to, count); },
          path_.string()};
}

}  // namespace lockstep::inline internal
