#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep::inline internal {

/// "cifar10.tar.gz  [#########           ]   45%  76.3 MiB of 162.6 MiB  12.1 MiB/s  0:07 left".
/// `total` 0: not known.
std::string format_transfer(const std::string& name, int64_t done, int64_t total,
                            double bytes_per_s);

/// "synth-ocr  [#########           ]   45%  450 of 1000 images  312/s  0:02 left". `total` > 0.
std::string format_count(const std::string& name, int64_t done, int64_t total, double per_s);

/// Redraws such a line in place on a terminal, at most ten times a second; silent elsewhere.
class TransferBar {
 public:
  using Format = std::string (*)(const std::string&, int64_t, int64_t, double);

  /// Draws on `fd` if it is a terminal.
  explicit TransferBar(std::string name, int fd = 2, Format format = format_transfer);
  ~TransferBar();  ///< Leaves the last state on the screen and goes to a new line.
  TransferBar(const TransferBar&) = delete;
  TransferBar& operator=(const TransferBar&) = delete;

  void update(int64_t done, int64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(Clock::time_point now);

  std::string name_;
  int fd_;
  Format format_;
  bool active_;
  bool drawn_ = false;
  int64_t first_ = -1;  // bytes at the first update: resumed bytes do not count as speed
  int64_t done_ = 0;
  int64_t total_ = 0;
  Clock::time_point begun_{};
  Clock::time_point drawn_at_{};
};

}  // namespace lockstep::inline internal
