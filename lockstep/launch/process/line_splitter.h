#pragma once
// Splits a stream of bytes into lines for the console, and keeps the last lines shown.

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inline internal {

/// Takes bytes in pieces of any size and returns whole lines without their newline.
///
/// Of a line with carriage returns, only the text that a terminal would finally show is returned
/// and kept. Progress bars come out as their last state. A line longer than `max_bytes` is returned
/// in pieces of that size, each but the last with `cut_mark` after it.
class LineSplitter {
 public:
  static constexpr size_t kMaxLineBytes = 64 << 10;

  static constexpr std::string_view kCutMark = " [cut after 64 KiB]";

  explicit LineSplitter(size_t max_bytes = kMaxLineBytes, std::string_view cut_mark = kCutMark)
      : max_bytes_(max_bytes), cut_mark_(cut_mark) {}

  std::vector<std::string> feed(std::string_view bytes);

  /// The last line, if the stream ended without a newline; else "".
  std::string finish();

  /// The text that a terminal shows for the line without a newline yet; "" for a very long one.
  std::string unfinished() const;
  /// That line has returned to its beginning: a progress bar.
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

  /// Whether each of `lines`, except blank ones, is among the last kLines lines, in this order. A
  /// prefix that ends with a space may precede it. False if all are blank.
  bool has(const std::vector<std::string>& lines) const;

 private:
  size_t end_of_shown(const std::string& line, size_t at) const;

  std::string text_;
};

}  // namespace lockstep::inline internal
