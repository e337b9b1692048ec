#pragma once
// When a server that has no room for another client looks again, and whether it says so. Pure: time
// is an argument.

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace lockstep::inline internal {

/// A shortage of descriptors may last a moment only, while another thread starts a program or a
/// client changes its connection. It counts once a client has waited through the end of a pause.
class AcceptPause {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kPause{100};

  bool is_on() const { return end_.has_value(); }

  /// There is no room for another client. True if that lasts.
  bool begin(Time now) {
    end_ = now + kPause;
    return std::exchange(waited_for_, false);
  }

  bool is_over(Time now) const { return end_ && now >= *end_; }

  /// The server listens again. `client_waits`: one has come meanwhile.
  void end(bool client_waits) {
    end_.reset();
    waited_for_ = client_waits;
  }

  /// A client has been accepted, or none is there.
  void accepted() { waited_for_ = false; }

  /// Time until is_over(), at least 0; nothing: there is no pause.
  std::optional<std::chrono::milliseconds> left(Time now) const {
    if (!end_) return std::nullopt;
    const auto time = std::chrono::ceil<std::chrono::milliseconds>(*end_ - now);
    return std::max(time, std::chrono::milliseconds(0));
  }

 private:
  std::optional<Time> end_;  ///< Of the pause that is on.
  bool waited_for_ = false;  ///< A client that came during the last pause has not been accepted.
};

}  // namespace lockstep::inline internal
