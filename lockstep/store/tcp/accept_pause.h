#pragma once
// When a server that has no room for another client looks again, and whether it says so. Pure: time
// is an argument.

#include <algorithm>
#include <chrono>
#include <optional>

namespace lockstep::inline internal {

/// A shortage of descriptors may last a moment only, while another thread starts a program or a
/// client changes its connection. It counts once a client has waited through a whole pause.
class AcceptPause {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kPause{100};

  bool is_on() const { return end_.has_value(); }

  /// A client may wait, and there is no room for it. True if that lasts.
  bool begin(Time now) {
    const bool lasts = ended_ && now - *ended_ < kPause;
    ended_.reset();
    end_ = now + kPause;
    return lasts;
  }

  /// True once after each pause: the server listens again. A client that waits comes at once.
  bool ends(Time now) {
    if (!end_ || now < *end_) return false;
    end_.reset();
    ended_ = now;
    return true;
  }

  void accepted() { ended_.reset(); }

  /// Time until ends() is true, at least 0; nothing: there is no pause.
  std::optional<std::chrono::milliseconds> left(Time now) const {
    if (!end_) return std::nullopt;
    const auto time = std::chrono::ceil<std::chrono::milliseconds>(*end_ - now);
    return std::max(time, std::chrono::milliseconds(0));
  }

 private:
  std::optional<Time> end_;    ///< Of the pause that is on.
  std::optional<Time> ended_;  ///< The last pause, if no client has been accepted since.
};

}  // namespace lockstep::inline internal
