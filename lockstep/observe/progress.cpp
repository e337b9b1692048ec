#include "lockstep/observe/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "lockstep/base/descriptors.h"
#include "lockstep/base/env.h"
#include "lockstep/base/text.h"

namespace lockstep::inline internal {
namespace {

constexpr int kBarColumns = 20;

double fraction(const Progress& progress) {
  if (progress.num_steps <= 0) return 0;
  return std::clamp(static_cast<double>(progress.step) / static_cast<double>(progress.num_steps),
                    0.0, 1.0);
}

std::string bar(double done) {
  const int full = static_cast<int>(done * kBarColumns);
  std::string text;
  for (int i = 0; i < kBarColumns; ++i) text += i < full ? "━" : "─";
  return text;
}

/// One field of the line. If the line is too long, higher ranks are dropped first.
struct Field {
  int rank;
  int columns;
  std::string text;
};

void add(std::vector<Field>& fields, int rank, std::string text) {
  const int columns = static_cast<int>(text.size());  // ASCII
  fields.push_back({rank, columns, std::move(text)});
}

std::string percent(double done) {
  // Rounded down: 100 % means done.
  return fmt::format("{:3.0f}%", std::floor(done * 100));
}

std::vector<Field> fields_of(const Progress& progress) {
  std::vector<Field> fields;
  add(fields, 1,
      progress.title.empty() ? fmt::format("epoch {}/{}", progress.epoch, progress.num_epochs)
                             : progress.title);
  fields.push_back({7, kBarColumns, bar(fraction(progress))});
  add(fields, 0, percent(fraction(progress)));
  add(fields, 6, fmt::format("{}/{}", progress.step, progress.num_steps));
  if (progress.loss) add(fields, 3, fmt::format("loss {:.4f}", *progress.loss));
  if (progress.lr) add(fields, 5, fmt::format("lr {:.4g}", *progress.lr));
  if (progress.images_per_s) {
    const int digits = *progress.images_per_s < 9.95 ? 1 : 0;
    add(fields, 4, fmt::format("{:.{}f} img/s", *progress.images_per_s, digits));
  }
  if (progress.left) add(fields, 2, "ETA " + format_duration(*progress.left));
  if (!progress.note.empty()) add(fields, 3, progress.note);
  return fields;
}

int columns_of(const std::vector<Field>& fields) {
  int columns = -2;
  for (const Field& one : fields) columns += one.columns + 2;
  return columns;
}

/// The width of the terminal behind a `lockstep run` that reads this pipe; 0: there is none.
int width_behind(int fd) {
  const std::string pipe = pipe_name(fd);  // a worker may insert another pipe (| tee)
  if (pipe.empty() || pipe != env_or("LOCKSTEP_TERMINAL_PIPE", "")) return 0;
  return std::clamp(std::atoi(env_or("LOCKSTEP_TERMINAL", "0").c_str()), 0, 1000);
}

bool is_terminal(int fd) {
  return ::isatty(fd) == 1 && env_or("TERM", "dumb") != "dumb";
}

constexpr int kColumnsOfALine = 200;

}  // namespace

std::string format_progress(const Progress& progress, int width) {
  std::vector<Field> fields = fields_of(progress);
  while (fields.size() > 1 && columns_of(fields) > width) {
    fields.erase(std::max_element(fields.begin(), fields.end(),
                                  [](const auto& a, const auto& b) { return a.rank < b.rank; }));
  }
  if (columns_of(fields) > width) return "";
  std::string line;
  for (const Field& one : fields) {
    if (!line.empty()) line += "  ";
    line += one.text;
  }
  return line;
}

ProgressLine::ProgressLine(int fd, bool wanted)
    : fd_(fd), wanted_(wanted), redraws_(is_terminal(fd)) {
  if (redraws_) return;
  width_ = width_behind(fd);
  redraws_ = width_ > 0;
}

ProgressLine::~ProgressLine() {
  finish();
}

int ProgressLine::width() const {
  if (width_ > 0) return width_ - 1;
  winsize size{};
  if (::ioctl(fd_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col - 1;  // some terminals wrap after a full last column
}

void ProgressLine::draw() {
  const std::string text = fmt::format("\r{}\x1b[K", format_progress(last_, width()));
  // The loss of the terminal must not end the training.
  (void)!::write(fd_, text.data(), text.size());
  drawn_ = true;
  pending_ = false;
  drawn_at_ = Clock::now();
}

void ProgressLine::update(const Progress& progress, Clock::time_point now) {
  if (!wanted_) return;
  if (!redraws_) return write_line(progress, now);
  last_ = progress;
  pending_ = true;
  if (!drawn_ || now - drawn_at_ >= std::chrono::milliseconds(100)) draw();
}

void ProgressLine::write_line(const Progress& progress, Clock::time_point now) {
  if (line_due_ == Clock::time_point{}) line_due_ = now + kFirstLine;
  if (now < line_due_) return;
  line_due_ = now + kLineInterval;
  const std::string text = format_progress(progress, kColumnsOfALine) + "\n";
  (void)!::write(fd_, text.data(), text.size());
}

void ProgressLine::clear() {
  if (!wanted_ || !drawn_) return;
  constexpr std::string_view kErase = "\r\x1b[K";
  (void)!::write(fd_, kErase.data(), kErase.size());
  drawn_ = false;
}

void ProgressLine::finish() {
  if (!wanted_ || (!drawn_ && !pending_)) return;
  if (pending_ || !drawn_) draw();
  (void)!::write(fd_, "\n", 1);
  drawn_ = false;
  pending_ = false;
}

}  // namespace lockstep::inline internal
