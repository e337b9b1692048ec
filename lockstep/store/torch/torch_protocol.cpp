#include "lockstep/store/torch/torch_protocol.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr uint32_t kMagic = 0x3C85F7CE;

/// The fields of a request: items of a key and `values` values, then a number.
struct Layout {
  bool counted = false;  ///< A count of the items comes first; else there is one, or none.
  bool keys = false;
  size_t values = 0;      ///< Of each key.
  size_t tail_bytes = 0;  ///< Of the number.
};

constexpr std::array<Layout, 19> kLayouts = {{
    {},                                            // validate: only at the beginning
    {.keys = true, .values = 1},                   // set
    {.keys = true, .values = 2},                   // compare_set
    {.keys = true},                                // get
    {.keys = true, .tail_bytes = 8},               // add
    {.counted = true, .keys = true},               // check
    {.counted = true, .keys = true},               // wait
    {},                                            // num_keys
    {.keys = true},                                // delete_key
    {.keys = true, .values = 1},                   // append
    {.counted = true, .keys = true},               // multi_get
    {.counted = true, .keys = true, .values = 1},  // multi_set
    {},                                            // cancel_wait
    {.tail_bytes = 4},                             // ping
    {.keys = true, .values = 1},                   // queue_push
    {.keys = true},                                // queue_pop
    {.keys = true},                                // queue_len
    {},                                            // list_keys
    {.keys = true, .tail_bytes = 8},               // barrier
}};
static_assert(kLayouts.size() == static_cast<size_t>(TorchOp::kBarrier) + 1);

const Layout& layout_of(TorchOp op) {
  return kLayouts[static_cast<size_t>(op)];
}

/// Before PyTorch 2.1. 7 was watch_key, which calls the client back.
constexpr std::array kOldOps = {TorchOp::kSet,     TorchOp::kCompareSet, TorchOp::kGet,
                                TorchOp::kAdd,     TorchOp::kCheck,      TorchOp::kWait,
                                TorchOp::kNumKeys, TorchOp::kValidate,   TorchOp::kDeleteKey};

[[noreturn]] void refuse_bytes(const std::string& why) {
  throw Error(ErrorCode::kCorrupt, why);
}

TorchOp op_of(uint8_t byte, bool old) {
  const size_t end = old ? kOldOps.size() : kLayouts.size();
  const TorchOp op = byte >= end ? TorchOp::kValidate : old ? kOldOps[byte] : TorchOp(byte);
  if (op == TorchOp::kValidate) {
    refuse_bytes(fmt::format("its operation {} is none of torch's store{}", byte,
                             old ? ", and it does not begin as PyTorch 2.1 or newer does" : ""));
  }
  return op;
}

}  // namespace

void TorchReader::append(std::string_view bytes) {
  forget_read();
  buffer_.append(bytes);
}

void TorchReader::forget_read() {
  constexpr size_t kKeptCapacity = 4 << 10;
  buffer_.erase(0, begin_);
  begin_ = 0;
  // One large value must not occupy memory for ever.
  if (buffer_.empty() && buffer_.capacity() > kKeptCapacity) buffer_.shrink_to_fit();
}

size_t TorchReader::unfinished_bytes() const {
  if (!request_ && available() == 0) return 0;
  if (!request_) return buffer_.capacity();
  const size_t strings = request_->keys.capacity() + request_->values.capacity();
  return buffer_.capacity() + bytes_ + strings * sizeof(std::string);
}

template <class Number>
std::optional<Number> TorchReader::read_number() {
  Number number = 0;
  if (available() < sizeof number) return std::nullopt;
  std::memcpy(&number, buffer_.data() + begin_, sizeof number);
  begin_ += sizeof number;
  return number;
}

/// Tells the numbering by the first bytes. In the old one 0 is set, and the size of a key follows,
/// which is never as large as the magic number.
bool TorchReader::recognise() {
  if (numbering_ != Numbering::kUnknown) return true;
  if (available() == 0) return false;
  if (buffer_[begin_] != 0) {
    numbering_ = Numbering::kOld;
    return true;
  }
  uint32_t magic = 0;
  if (available() < 1 + sizeof magic) return false;
  std::memcpy(&magic, buffer_.data() + begin_ + 1, sizeof magic);
  numbering_ = magic == kMagic ? Numbering::kNew : Numbering::kOld;
  if (magic == kMagic) begin_ += 1 + sizeof magic;
  return true;
}

bool TorchReader::begin_request() {
  if (!request_) {
    const auto byte = read_number<uint8_t>();
    if (!byte) {
      forget_read();
      return false;
    }
    request_.emplace();
    request_->op = op_of(*byte, numbering_ == Numbering::kOld);
    items_.reset();
    bytes_ = 0;
  }
  const Layout& layout = layout_of(request_->op);
  if (!items_ && !layout.counted) items_ = layout.keys ? 1 : 0;
  if (!items_) items_ = read_number<uint64_t>();
  if (items_ && *items_ > kMaxTorchKeys) {
    refuse_bytes(fmt::format("a request with {} keys; {} are allowed", *items_, kMaxTorchKeys));
  }
  return items_.has_value();
}

/// Reads a size and that many bytes. False, and nothing is read, if they have not all come.
bool TorchReader::read_string(size_t most, const char* what, std::vector<std::string>* to) {
  const size_t began = begin_;
  const auto size = read_number<uint64_t>();
  if (!size) return false;
  if (*size > most)
    refuse_bytes(fmt::format("a {} of {} bytes; {} are allowed", what, *size, most));
  if (*size + bytes_ > kMaxTorchRequestBytes) {
    refuse_bytes(fmt::format("a request of more than {} bytes", kMaxTorchRequestBytes));
  }
  if (available() < *size) {
    begin_ = began;
    return false;
  }
  to->emplace_back(buffer_, begin_, *size);
  begin_ += *size;
  bytes_ += *size;
  return true;
}

/// The next key or value.
bool TorchReader::read_item() {
  const size_t values = layout_of(request_->op).values;
  if (request_->values.size() < request_->keys.size() * values) {
    return read_string(kMaxTorchValueBytes, "value", &request_->values);
  }
  return read_string(kMaxTorchKeyBytes, "key", &request_->keys);
}

std::optional<TorchRequest> TorchReader::next() {
  if (!recognise() || !begin_request()) return std::nullopt;
  const Layout& layout = layout_of(request_->op);
  while (request_->keys.size() < *items_ || request_->values.size() < *items_ * layout.values) {
    if (!read_item()) return std::nullopt;
  }
  if (layout.tail_bytes > 0) {
    const auto number = layout.tail_bytes == 8 ? read_number<int64_t>()
                                               : std::optional<int64_t>(read_number<uint32_t>());
    if (!number) return std::nullopt;
    request_->number = *number;
  }
  return std::exchange(request_, std::nullopt);
}

}  // namespace lockstep::inline internal
