#pragma once
// The bytes of a pickle, one after the other. Private to pickle*.cpp.

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/error.h"

namespace lockstep {

/// Errors of all that reads: kCorrupt, "is cut off".
class PickleCursor {
 public:
  /// Both outlive it. `file` is for errors.
  PickleCursor(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  /// kCorrupt: `what` is wrong with the pickle, here.
  [[noreturn]] void corrupt(const std::string& what) const {
    throw Error(
        ErrorCode::kCorrupt,
        fmt::format("{}: not a readable .pth file: its pickle {} at byte {}", file_, what, at_));
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) corrupt("is cut off");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  uint8_t byte() { return static_cast<uint8_t>(take(1)[0]); }
  void back() { --at_; }  ///< Over the byte that was taken last.
  /// Of `count` bytes, little-endian.
  uint64_t number(size_t count) {
    const std::string_view taken = take(count);
    uint64_t value = 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(taken[i]);
    return value;
  }
  /// Without its line feed.
  std::string line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) corrupt("is cut off");
    std::string text(take(end - at_));
    ++at_;
    return text;
  }

 private:
  std::string_view bytes_;
  const std::string& file_;
  size_t at_ = 0;
};

}  // namespace lockstep
