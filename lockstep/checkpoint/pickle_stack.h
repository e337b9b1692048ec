#pragma once
// The data of a pickle's operations: its bytes, one after the other, a stack of values, marks in
// it, and stored values. Private to pickle*.cpp.

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lockstep/checkpoint/pickle.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// The bytes of a pickle. Errors of all reads: kCorrupt, "is cut off".
class PickleCursor {
 public:
  /// Both outlive it. `file` is for errors.
  PickleCursor(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  /// Throws kCorrupt: `what` is wrong with the pickle at this byte.
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
  void back() { --at_; }  ///< Returns to the last byte taken.
  uint64_t place() const { return at_; }
  /// A number of `count` bytes, little-endian.
  uint64_t number(size_t count) {
    const std::string_view taken = take(count);
    uint64_t value = 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(taken[i]);
    return value;
  }
  /// The next line, without its line feed.
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

/// It takes nothing below the latest mark. Errors of all: kCorrupt, at the position of `cursor`,
/// for a missing operand.
class PickleStack {
 public:
  explicit PickleStack(const PickleCursor& cursor) : cursor_(cursor) {}

  void push(PickleValue value);
  void push_int(int64_t value) { push({PickleValue::Kind::kInt, value, {}, {}}); }
  uint32_t pop();
  std::vector<uint32_t> pop_count(size_t count);
  PickleValue& top();

  void mark() { marks_.push_back(stack_.size()); }
  /// The values above the latest mark, which is removed too.
  std::vector<uint32_t> pop_mark();

  /// put() stores the top value under a key; get() pushes it again.
  void put(uint64_t key);
  void get(uint64_t key);
  size_t num_kept() const { return memo_.size(); }

  /// Appends to the list or dict on top; for other values (objects that fill themselves) the items
  /// are dropped.
  void add(const std::vector<uint32_t>& items, PickleValue::Kind kind);
  /// Pushes the result of a call: for an OrderedDict, empty or of a list of pairs (Python 2), the
  /// dict, else the call.
  void call(uint32_t callee, uint32_t arguments);

  /// The name of a module or a class: a short text. One long stored text could be used any number
  /// of times, and would be copied each time.
  const std::string& name_of(uint32_t value) const;
  /// All values; the one on top is the result. `bytes`: the pickle's length. Once.
  Pickle finish(uint64_t bytes);

 private:
  /// The items of a list of pairs, key, value, key, value ...; none if it is another value.
  std::optional<std::vector<uint32_t>> pairs_in(uint32_t list);
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  const PickleCursor& cursor_;
  Pickle pickle_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
  size_t copied_ = 0;  ///< Items of lists of pairs.
};

}  // namespace lockstep::inline internal
