#pragma once
// The progress line at the foot of a terminal; elsewhere an occasional line.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::inline internal {

struct Progress {
  int64_t epoch = 1;  ///< From 1.
  int64_t num_epochs = 1;
  int64_t step = 0;  ///< Steps done, of num_steps in all.
  int64_t num_steps = 0;
  std::optional<double> loss;
  std::optional<double> lr;
  std::optional<double> images_per_s;  ///< Over all ranks.
  std::optional<std::chrono::seconds> left;
  std::string title;  ///< In place of "epoch 2/5" if there are no epochs.
  std::string note;   ///< The reason of a delay, at the end.
};

/// "epoch 2/5 ━━━━━━──── 40% 200/500 loss 1.2345 lr 0.1 312 img/s ETA 1:02", at most `width`
/// columns. If it is too long, fields go in the order bar, steps, lr, rate, loss.
std::string format_progress(const Progress& progress, int width);

/// Redraws that line in place on a terminal, at most ten times a second. A pipe to a `lockstep run`
/// on a terminal (LOCKSTEP_TERMINAL: its width, LOCKSTEP_TERMINAL_PIPE: that pipe) counts as one,
/// too. Elsewhere the line is written with an end, first after kFirstLine and then every
/// kLineInterval, also under mpirun and srun.
/// One thread.
class ProgressLine {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kFirstLine{5};
  static constexpr std::chrono::seconds kLineInterval{30};

  /// Draws on `fd`; writes nothing unless `wanted`.
  explicit ProgressLine(int fd = 2, bool wanted = true);
  ~ProgressLine();  ///< As finish().
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool active() const { return wanted_; }
  /// `now`: for tests.
  void update(const Progress& progress, Clock::time_point now = Clock::now());
  /// Removes the line, so that a log line can be written; the next update() draws it again.
  void clear();
  /// Leaves the last state on the screen and goes to a new line.
  void finish();

 private:
  int width() const;
  void draw();
  void write_line(const Progress& progress, Clock::time_point now);

  int fd_;
  bool wanted_;
  bool redraws_;   // on a terminal
  int width_ = 0;  // of a terminal behind a pipe
  bool drawn_ = false;
  Progress last_;
  bool pending_ = false;  // last_ is newer than the screen
  Clock::time_point drawn_at_{};
  Clock::time_point line_due_{};
};

}  // namespace lockstep::inline internal
