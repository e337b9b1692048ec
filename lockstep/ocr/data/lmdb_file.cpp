#include "lockstep/ocr/data/lmdb_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>

#include "lockstep/base/file.h"
#include "lockstep/base/reading_note.h"
#include "lockstep/error.h"

namespace lockstep::ocr {
namespace {

constexpr uint32_t kMagic = 0xBEEFC0DE;
constexpr uint32_t kVersion = 1;
constexpr uint64_t kNoPage = ~uint64_t{0};
constexpr uint64_t kHeaderBytes = 16;  // of a page
constexpr uint64_t kNodeBytes = 8;     // of a node, before its key
constexpr uint16_t kBranch = 0x01, kLeaf = 0x02, kOverflow = 0x04, kMeta = 0x08;
constexpr uint16_t kBigData = 0x01;  // of a node: its value is on separate pages
constexpr int kMaxDepth = 32;        // as in LMDB
constexpr size_t kMetaBytes = 136;   // struct MDB_meta

template <typename T>
T load_at(std::string_view bytes, uint64_t offset) {
  T value{};
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

bool is_page_size(uint64_t bytes) {
  return bytes >= 512 && bytes <= 65536 && (bytes & (bytes - 1)) == 0;
}

}  // namespace

/// A page of the tree. Each node is checked on access.
class LmdbFile::Page {
 public:
  struct Node {
    std::string_view key;
    std::string_view rest;  ///< Of the page, after the key.
    uint32_t value_bytes = 0;
    uint64_t child = 0;
    uint16_t flags = 0;
  };

  Page(const LmdbFile& file, uint64_t number, std::string bytes)
      : file_(file), number_(number), bytes_(std::move(bytes)) {
    flags_ = load_at<uint16_t>(bytes_, 10);
    const auto lower = load_at<uint16_t>(bytes_, 12);
    const bool is_tree =
        (flags_ & (kBranch | kLeaf)) == kBranch || (flags_ & (kBranch | kLeaf)) == kLeaf;
    if (load_at<uint64_t>(bytes_, 0) != number_ || !is_tree ||
        (flags_ & (kOverflow | kMeta)) != 0 || lower < kHeaderBytes || lower > bytes_.size()) {
      fail("is no page of the tree");
    }
    num_nodes_ = (lower - kHeaderBytes) / 2;
    if (num_nodes_ == 0) fail("is empty");
  }

  bool is_leaf() const { return (flags_ & kLeaf) != 0; }

  Node node(uint64_t index) const {
    const std::string_view page = bytes_;
    const uint64_t at = load_at<uint16_t>(page, kHeaderBytes + 2 * index);
    if (at < kHeaderBytes || at + kNodeBytes > page.size()) fail("has a node outside itself");
    Node node;
    const uint64_t low = load_at<uint16_t>(page, at), high = load_at<uint16_t>(page, at + 2);
    node.flags = load_at<uint16_t>(page, at + 4);
    const auto key_bytes = load_at<uint16_t>(page, at + 6);
    if (at + kNodeBytes + key_bytes > page.size()) fail("has a key that leaves it");
    node.key = page.substr(at + kNodeBytes, key_bytes);
    node.rest = page.substr(at + kNodeBytes + key_bytes);
    node.value_bytes = static_cast<uint32_t>(low | high << 16);
    node.child = low | high << 16 | uint64_t{node.flags} << 32;
    return node;
  }

  /// Index of the first node whose key is not below `key`. The first key of a branch is skipped,
  /// because it stands for the lowest of all.
  uint64_t lower_bound(std::string_view key) const {
    uint64_t begin = is_leaf() ? 0 : 1, end = num_nodes_;
    while (begin < end) {
      const uint64_t middle = (begin + end) / 2;
      if (node(middle).key < key) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin;
  }

  uint64_t child_for(std::string_view key) const {
    const uint64_t index = lower_bound(key);
    const bool exact = index < num_nodes_ && node(index).key == key;
    return node(exact ? index : index - 1).child;
  }

  std::optional<Node> find(std::string_view key) const {
    const uint64_t index = lower_bound(key);
    if (index == num_nodes_) return std::nullopt;
    const Node found = node(index);
    return found.key == key ? std::optional(found) : std::nullopt;
  }

  [[noreturn]] void fail(const std::string& how) const {
    file_.corrupt(fmt::format("page {} {}", number_, how));
  }

 private:
  const LmdbFile& file_;
  uint64_t number_;
  std::string bytes_;
  uint16_t flags_ = 0;
  uint64_t num_nodes_ = 0;
};

LmdbFile::LmdbFile(const std::filesystem::path& path) {
  std::error_code ignored;
  name_ = std::filesystem::is_directory(path, ignored) ? path / "data.mdb" : path;
  fd_ = open_to_read(name_);
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) throw io_error("stat " + name_);
  num_bytes_ = status.st_size;
  read_meta();
}

void LmdbFile::read_meta() {
  constexpr uint64_t kLead = kHeaderBytes + kMetaBytes;
  if (num_bytes_ < static_cast<int64_t>(kLead)) corrupt("too short for LMDB");
  const std::string first = read_bytes(0, kLead);
  page_bytes_ = load_at<uint32_t>(first, kHeaderBytes + 24);  // md_pad of the first database
  if (load_at<uint32_t>(first, kHeaderBytes) != kMagic || !is_page_size(page_bytes_)) {
    corrupt("no LMDB file");
  }
  const auto one = read_root(std::string_view(first).substr(kHeaderBytes));
  const std::string second = read_bytes(page_bytes_, kLead);
  const auto two = read_root(std::string_view(second).substr(kHeaderBytes));
  if (!one && !two) corrupt("no LMDB file of version 1");
  root_ = !one || (two && two->transaction > one->transaction) ? *two : *one;
  if (root_.last_page >= static_cast<uint64_t>(num_bytes_) / page_bytes_) {
    corrupt(fmt::format("cut off: {} bytes, but its last page is number {} of {} bytes each",
                        num_bytes_, root_.last_page, page_bytes_));
  }
  if ((root_.flags & 0x3F) != 0) corrupt("a kind of database that is not read (DUPSORT, ..)");
}

std::optional<LmdbFile::Root> LmdbFile::read_root(std::string_view meta) {
  if (load_at<uint32_t>(meta, 0) != kMagic || load_at<uint32_t>(meta, 4) != kVersion) return {};
  constexpr uint64_t kMain = 24 + 48;  // the second of two struct MDB_db
  return Root{.page = load_at<uint64_t>(meta, kMain + 40),
              .entries = load_at<uint64_t>(meta, kMain + 32),
              .last_page = load_at<uint64_t>(meta, kMain + 48),
              .transaction = load_at<uint64_t>(meta, kMain + 56),
              .flags = load_at<uint16_t>(meta, kMain + 4)};
}

std::string LmdbFile::read_bytes(uint64_t offset, uint64_t size) const {
  const auto end = static_cast<uint64_t>(num_bytes_);
  if (offset > end || end - offset < size) corrupt(fmt::format("no byte {}", offset + size));
  const ReadingNote note(name_);
  std::string bytes(size, '\0');
  if (read_at(fd_.get(), offset, bytes.data(), size, name_) < size) {
    corrupt("it became shorter while it was read");
  }
  return bytes;
}

LmdbFile::Page LmdbFile::read_page(uint64_t number) const {
  if (number > root_.last_page) corrupt(fmt::format("a page {} that is not there", number));
  return {*this, number, read_bytes(number * page_bytes_, page_bytes_)};
}

std::string LmdbFile::read_overflow(uint64_t number, uint64_t size) const {
  if (number > root_.last_page) corrupt(fmt::format("a page {} that is not there", number));
  const std::string header = read_bytes(number * page_bytes_, kHeaderBytes);
  const uint64_t pages = load_at<uint32_t>(header, 12);
  if (load_at<uint64_t>(header, 0) != number || (load_at<uint16_t>(header, 10) & kOverflow) == 0 ||
      size + kHeaderBytes > pages * page_bytes_) {
    corrupt(fmt::format("page {} does not hold a value of {} bytes", number, size));
  }
  return read_bytes(number * page_bytes_ + kHeaderBytes, size);
}

std::optional<std::string> LmdbFile::get(std::string_view key) const {
  if (root_.page == kNoPage) return std::nullopt;
  uint64_t number = root_.page;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    const Page page = read_page(number);
    if (!page.is_leaf()) {
      number = page.child_for(key);
      continue;
    }
    const auto node = page.find(key);
    if (!node) return std::nullopt;
    if ((node->flags & ~kBigData) != 0) page.fail("has a value of another kind");
    if ((node->flags & kBigData) != 0) {
      if (node->rest.size() < sizeof(uint64_t)) page.fail("has a value that leaves it");
      return read_overflow(load_at<uint64_t>(node->rest, 0), node->value_bytes);
    }
    if (node->value_bytes > node->rest.size()) page.fail("has a value that leaves it");
    return std::string(node->rest.substr(0, node->value_bytes));
  }
  corrupt("its tree has no end");
}

void LmdbFile::corrupt(const std::string& why) const {
  throw Error(ErrorCode::kCorrupt, name_ + ": " + why);
}

}  // namespace lockstep::ocr
