#include "lockstep/store/tcp/protocol.h"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr size_t kHeaderBytes = sizeof(uint32_t);

class Writer {
 public:
  explicit Writer(int64_t payload) {
    bytes_.reserve(static_cast<size_t>(payload) + 64);
    number(uint32_t{0});  // the size, filled in at the end
  }
  template <class T>
  void number(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void string(std::string_view text) {
    number(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }
  std::string finish() {
    const auto size = static_cast<uint32_t>(bytes_.size() - kHeaderBytes);
    std::memcpy(bytes_.data(), &size, sizeof size);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  /// A number below `limit`.
  template <class T>
  T number_below(T limit, const char* what) {
    const T value = number<T>();
    if (value >= limit) throw Error(ErrorCode::kCorrupt, fmt::format("{} {}", what, value));
    return value;
  }
  std::string string() { return std::string(take(number<uint32_t>())); }
  std::optional<std::string> optional_string() {
    const bool given = number_below<uint8_t>(2, "flag") != 0;
    std::string text = string();
    if (!given && !text.empty()) throw Error(ErrorCode::kCorrupt, "a value that is not there");
    return given ? std::optional(std::move(text)) : std::nullopt;
  }
  /// The number of following items, each of at least `item_bytes`.
  uint32_t count(size_t item_bytes) {
    const auto items = number<uint32_t>();
    if (items > bytes_.size() / item_bytes) throw cut_short();
    return items;
  }
  void finish() const {
    if (!bytes_.empty()) {
      throw Error(ErrorCode::kCorrupt, fmt::format("{} bytes too many", bytes_.size()));
    }
  }

 private:
  static Error cut_short() { return {ErrorCode::kCorrupt, "the message is cut short"}; }
  std::string_view take(size_t size) {
    if (size > bytes_.size()) throw cut_short();
    const auto taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
};

void check_num_keys(const StoreRequest& request) {
  if (request.op == StoreOp::kArrive && request.keys.empty())
    throw Error(ErrorCode::kCorrupt, "arrive without a key");
  if (takes_many_keys(request.op)) return;
  const bool without = request.op == StoreOp::kCancel || request.op == StoreOp::kOpenCallSlot;
  const size_t wanted = without ? 0 : 1;
  if (request.keys.size() != wanted) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{} with {} keys", to_string(request.op), request.keys.size()));
  }
}

}  // namespace

std::string encode(const RequestFrame& frame) {
  const StoreRequest& request = frame.request;
  Writer out(payload_bytes(request));
  out.number(frame.id);
  out.number(static_cast<uint8_t>(request.op));
  out.number(request.number);
  out.number(static_cast<uint32_t>(request.keys.size()));
  for (const auto& key : request.keys) out.string(key);
  if (request.op == StoreOp::kSetMany) {
    for (const auto& value : request.values) out.string(value);
  }
  out.string(request.value);
  out.number(static_cast<uint8_t>(request.expected.has_value()));
  out.string(request.expected ? *request.expected : "");
  return out.finish();
}

std::string encode(const ReplyFrame& frame) {
  const StoreReply& reply = frame.reply;
  Writer out(payload_bytes(reply));
  out.number(frame.id);
  out.number(static_cast<uint8_t>(reply.status));
  out.number(static_cast<uint8_t>(reply.yes));
  out.number(reply.number);
  out.string(reply.text);
  out.number(static_cast<uint32_t>(reply.items.size()));
  for (const auto& item : reply.items) {
    out.string(item.key);
    out.number(static_cast<uint8_t>(item.value.has_value()));
    out.string(item.value ? *item.value : "");
  }
  return out.finish();
}

std::string_view body_of(std::string_view frame) {
  return frame.substr(kHeaderBytes);
}

RequestFrame decode_request(std::string_view body) {
  Reader in(body);
  RequestFrame frame;
  StoreRequest& request = frame.request;
  frame.id = in.number<uint64_t>();
  request.op = static_cast<StoreOp>(in.number_below<uint8_t>(kNumStoreOps, "operation"));
  request.number = in.number<int64_t>();
  request.keys.resize(in.count(sizeof(uint32_t)));
  for (auto& key : request.keys) key = in.string();
  if (request.op == StoreOp::kSetMany) {
    request.values.resize(request.keys.size());
    for (auto& value : request.values) value = in.string();
  }
  request.value = in.string();
  request.expected = in.optional_string();
  in.finish();
  check_num_keys(request);
  check_limits(request);
  return frame;
}

ReplyFrame decode_reply(std::string_view body) {
  constexpr uint8_t kNumStatus = static_cast<uint8_t>(StoreReply::Status::kRefused) + 1;
  Reader in(body);
  ReplyFrame frame;
  StoreReply& reply = frame.reply;
  frame.id = in.number<uint64_t>();
  reply.status = static_cast<StoreReply::Status>(in.number_below<uint8_t>(kNumStatus, "status"));
  reply.yes = in.number_below<uint8_t>(2, "flag") != 0;
  reply.number = in.number<int64_t>();
  reply.text = in.string();
  reply.items.resize(in.count(2 * sizeof(uint32_t) + 1));
  for (auto& item : reply.items) {
    item.key = in.string();
    item.value = in.optional_string();
  }
  in.finish();
  return frame;
}

void FrameReader::append(std::string_view bytes) {
  constexpr size_t kKeptCapacity = 1 << 16;
  buffer_.erase(0, begin_);
  begin_ = 0;
  // One large message must not occupy memory for ever.
  if (buffer_.empty() && buffer_.capacity() > kKeptCapacity) buffer_.shrink_to_fit();
  buffer_.append(bytes);
}

std::optional<std::string_view> FrameReader::next() {
  const auto rest = std::string_view(buffer_).substr(begin_);
  if (rest.size() < kHeaderBytes) return std::nullopt;
  uint32_t size = 0;
  std::memcpy(&size, rest.data(), sizeof size);
  if (size > max_body_) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("a message of {} bytes, at most {} are allowed", size, max_body_));
  }
  if (rest.size() - kHeaderBytes < size) return std::nullopt;
  begin_ += kHeaderBytes + size;
  return rest.substr(kHeaderBytes, size);
}

}  // namespace lockstep::inline internal
