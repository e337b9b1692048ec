#pragma once
// What a reader of the console still sees.

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

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
