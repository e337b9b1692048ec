#include "lockstep/data/fetch/transfer_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "lockstep/base/text.h"

namespace lockstep::inline internal {
namespace {

constexpr size_t kBarColumns = 20;

/// "NAME  [#########           ]   45%".
std::string format_part(const std::string& name, int64_t done, int64_t total) {
  const double part = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const auto full = static_cast<size_t>(part * kBarColumns);
  return fmt::format("{}  [{}{}]  {:3d}%", name, std::string(full, '#'),
                     std::string(kBarColumns - full, ' '), static_cast<int>(part * 100));
}

std::string format_left(int64_t done, int64_t total, double per_s) {
  if (per_s <= 0 || done >= total) return "";
  const auto left = static_cast<int64_t>(static_cast<double>(total - done) / per_s);
  return fmt::format("  {} left", format_duration(std::chrono::seconds(left)));
}

}  // namespace

std::string format_transfer(const std::string& name, int64_t done, int64_t total,
                            double bytes_per_s) {
  const std::string speed = format_bytes(static_cast<int64_t>(bytes_per_s)) + "/s";
  if (total <= 0) return fmt::format("{}  {}  {}", name, format_bytes(done), speed);
  return fmt::format("{}  {} of {}  {}{}", format_part(name, done, total), format_bytes(done),
                     format_bytes(total), speed,
                     bytes_per_s >= 1 ? format_left(done, total, bytes_per_s) : "");
}

std::string format_count(const std::string& name, int64_t done, int64_t total, double per_s) {
  return fmt::format("{}  {} of {} images  {:.0f}/s{}", format_part(name, done, total), done, total,
                     per_s, format_left(done, total, per_s));
}

TransferBar::TransferBar(std::string name, int fd, Format format)
    : name_(std::move(name)), fd_(fd), format_(format), active_(::isatty(fd) == 1) {}

TransferBar::~TransferBar() {
  if (!drawn_) return;
  draw(Clock::now());
  (void)!::write(fd_, "\n", 1);
}

void TransferBar::update(int64_t done, int64_t total) {
  if (!active_) return;
  const auto now = Clock::now();
  if (first_ < 0) {
    first_ = done;
    begun_ = now;
  }
  done_ = done;
  total_ = total;
  if (!drawn_ || now - drawn_at_ >= std::chrono::milliseconds(100)) draw(now);
}

void TransferBar::draw(Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - begun_).count();
  const double speed = seconds > 0 ? static_cast<double>(done_ - first_) / seconds : 0;
  const std::string text = fmt::format("\r{}\x1b[K", format_(name_, done_, total_, speed));
  (void)!::write(fd_, text.data(), text.size());
  drawn_ = true;
  drawn_at_ = now;
}

}  // namespace lockstep::inline internal
