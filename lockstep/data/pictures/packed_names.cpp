#include "lockstep/data/pictures/packed_names.h"

#include <algorithm>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kBlockNames = 16;

/// Seven bits a byte, the lowest ones first. The highest bit is set if another byte follows.
void put_length(std::string& bytes, size_t length) {
  for (; length >= 0x80; length >>= 7) bytes += static_cast<char>((length & 0x7F) | 0x80);
  bytes += static_cast<char>(length);
}

/// The number of bytes that both have in common, counted from their beginnings.
template <typename Iterator>
size_t common_bytes(Iterator one, Iterator one_end, Iterator other, Iterator other_end) {
  return static_cast<size_t>(std::mismatch(one, one_end, other, other_end).first - one);
}

/// Takes the names of a block, one after another.
class BlockNames {
 public:
  explicit BlockNames(std::string_view bytes) : rest_(bytes) {}

  /// `name`: the one before, which the next replaces. False: there is none, or it is damaged.
  bool next(std::string& name) {
    size_t front = 0, back = 0, own = 0;
    if (!take_length(front) || !take_length(back) || !take_length(own)) return false;
    if (front > name.size() || back > name.size() - front || own > rest_.size()) return false;
    name.replace(front, name.size() - front - back, rest_.substr(0, own));
    rest_.remove_prefix(own);
    return true;
  }

 private:
  bool take_length(size_t& length) {
    for (unsigned shift = 0; shift < 63 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      length |= static_cast<size_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  std::string_view rest_;
};

}  // namespace

void PackedNames::add(std::string_view name) {
  if (size_ % kBlockNames == 0) {
    begins_.push_back(end_);
    last_.clear();
  }
  const std::string_view last = last_;
  const size_t front = common_bytes(last.begin(), last.end(), name.begin(), name.end());
  const auto rest = name.substr(front), last_rest = last.substr(front);
  const size_t back =
      common_bytes(last_rest.rbegin(), last_rest.rend(), rest.rbegin(), rest.rend());
  const auto own = rest.substr(0, rest.size() - back);
  for (const size_t length : {front, back, own.size()}) put_length(bytes_, length);
  bytes_ += own;
  end_ = bytes_.size();
  last_ = name;
  ++size_;
}

void PackedNames::keep(int64_t size) {
  if (size >= size_) return;
  size_ = size;  // the last block may have names behind it
  const auto blocks = static_cast<size_t>((size + kBlockNames - 1) / kBlockNames);
  if (blocks == begins_.size()) return;
  end_ = begins_[blocks];
  begins_.resize(blocks);
  if (text_ == nullptr) bytes_.resize(end_);
}

void PackedNames::shrink() {
  bytes_.shrink_to_fit();
  begins_.shrink_to_fit();
}

bool PackedNames::move_to(const std::filesystem::path& folder) {
  if (bytes_.empty()) return false;
  text_ = NameText::put(folder, bytes_);
  if (text_ == nullptr) return false;
  std::string().swap(bytes_);  // an assignment would keep its memory
  return true;
}

std::string PackedNames::at(int64_t index) const {
  std::string buffer, name;
  BlockNames names(block(index / kBlockNames, buffer));
  for (int64_t i = 0; i <= index % kBlockNames; ++i) {
    if (!names.next(name)) damaged();
  }
  return name;
}

void PackedNames::for_each(
    const std::function<void(int64_t index, std::string_view name)>& found) const {
  std::string buffer, name;
  for (int64_t begin = 0; begin < size_; begin += kBlockNames) {
    BlockNames names(block(begin / kBlockNames, buffer));
    const int64_t end = std::min(begin + kBlockNames, size_);
    for (int64_t i = begin; i < end; ++i) {
      if (!names.next(name)) damaged();
      found(i, name);
    }
  }
}

std::string_view PackedNames::block(int64_t number, std::string& buffer) const {
  const auto i = static_cast<size_t>(number);
  const uint64_t begin = begins_[i];
  const uint64_t end = i + 1 < begins_.size() ? begins_[i + 1] : end_;
  if (text_ == nullptr) return std::string_view(bytes_).substr(begin, end - begin);
  buffer.resize(end - begin);
  text_->read(begin, buffer.data(), buffer.size());
  return buffer;
}

void PackedNames::damaged() const {
  if (text_ != nullptr) text_->lost("has lost a name");
  throw Error(ErrorCode::kInternal, "a name of a picture is damaged in memory");
}

}  // namespace lockstep::inline internal
