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

  /// Whether each of `lines` stands in one of the last kLines lines, in this order. A prefix may
  /// stand before it.
  bool has(const std::vector<std::string>& lines) const;

 private:
  std::string text_;
};

}  // namespace lockstep
