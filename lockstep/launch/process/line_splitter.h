#pragma once
// A stream of bytes as lines: cut for the console, and the last that its reader still sees.

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Feed it what was read, in pieces of any size; it returns whole lines without their newline.
///
/// Where a line contains carriage returns, only what a terminal would show at its end is returned:
/// progress bars come out as their last state. Of a bar no more than that is kept. A line longer
/// than `max_bytes` is returned in pieces of that size, each but the last with `cut_mark` after it.
class LineSplitter {
 public:
  static constexpr size_t kMaxLineBytes = 64 << 10;

  static constexpr std::string_view kCutMark = " [cut after 64 KiB]";

  explicit LineSplitter(size_t max_bytes = kMaxLineBytes, std::string_view cut_mark = kCutMark)
      : max_bytes_(max_bytes), cut_mark_(cut_mark) {}

  std::vector<std::string> feed(std::string_view bytes);

  /// The last line, if the stream ended without a newline; else "".
  std::string finish();

  /// What a terminal shows of the line that has no end yet; "" of a very long one.
  std::string unfinished() const;
  /// That line has come back to its beginning: a progress bar.
  bool is_bar() const { return partial_.find('\r') != std::string::npos; }

 private:
  size_t max_bytes_;
  std::string_view cut_mark_;
  std::string partial_;
};

/// The last lines of a text that grows. Pure.
class RecentText {
 public:
  static constexpr int kLines = 30;  ///< About a screen.

  void add(std::string_view text);

  /// Whether each of `lines` is one of the last kLines lines, in this order, but for blank ones. A
  /// prefix with a space at its end may stand before it. False where all are blank.
  bool has(const std::vector<std::string>& lines) const;

 private:
  size_t end_of_shown(const std::string& line, size_t at) const;

  std::string text_;
};

}  // namespace lockstep
