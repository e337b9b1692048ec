#include "lockstep/launch/agent/output/line_folder.h"

#include <algorithm>
#include <utility>

namespace lockstep::inline internal {

LineFolder::LineFolder(int num_ranks, bool fold, std::chrono::milliseconds window)
    : num_ranks_(static_cast<size_t>(num_ranks)), fold_(fold && num_ranks_ >= 2), window_(window) {}

/// Index of the first held line that `rank` may still join: its lines must keep their order.
size_t LineFolder::after_last_of(int rank) const {
  for (size_t i = held_.size(); i > 0; --i) {
    const auto& ranks = held_[i - 1].line.ranks;
    if (std::binary_search(ranks.begin(), ranks.end(), rank)) return i;
  }
  return 0;
}

std::vector<FoldedLine> LineFolder::add(int rank, int stream, std::string text, Time now) {
  if (!fold_) return {{stream, {rank}, std::move(text)}};
  std::vector<FoldedLine> out = pass_time(now);
  for (size_t i = after_last_of(rank); i < held_.size(); ++i) {
    FoldedLine& line = held_[i].line;
    if (line.stream != stream || line.text != text || !may_fold(stream)) continue;
    line.ranks.insert(std::lower_bound(line.ranks.begin(), line.ranks.end(), rank), rank);
    release_whole(&out);
    return out;
  }
  FoldedLine line{stream, {rank}, std::move(text)};
  if (held_.empty() && !may_fold(stream)) {
    out.push_back(std::move(line));
    return out;
  }
  held_.push_back({std::move(line), now + window_});
  if (held_.size() > kMaxHeld) release(&out);
  return out;
}

/// Releases the first lines that need not wait for another rank.
void LineFolder::release_whole(std::vector<FoldedLine>* out) {
  while (!held_.empty()) {
    const FoldedLine& first = held_.front().line;
    if (may_fold(first.stream) && first.ranks.size() < num_ranks_) return;
    release(out);
  }
}

/// Releases the first held line; one that few ranks printed is released rank by rank.
void LineFolder::release(std::vector<FoldedLine>* out) {
  FoldedLine line = std::move(held_.front().line);
  held_.pop_front();
  if (line.ranks.size() >= std::min(kFewest, num_ranks_)) {
    out->push_back(std::move(line));
    return;
  }
  for (const int rank : line.ranks) out->push_back({line.stream, {rank}, line.text});
}

std::vector<FoldedLine> LineFolder::pass_time(Time now) {
  std::vector<FoldedLine> out;
  release_whole(&out);
  while (!held_.empty() && held_.front().until <= now) {
    release(&out);
    release_whole(&out);
  }
  return out;
}

std::vector<FoldedLine> LineFolder::flush() {
  std::vector<FoldedLine> out;
  while (!held_.empty()) release(&out);
  return out;
}

bool LineFolder::holds(int stream, const std::string& text) const {
  return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
    return held.line.stream == stream && held.line.text == text;
  });
}

std::optional<LineFolder::Time> LineFolder::due() const {
  if (held_.empty()) return std::nullopt;
  return held_.front().until;
}

FailureEcho::FailureEcho(int local_rank, const std::vector<std::string>& stderr_tail)
    : local_rank_(local_rank) {
  if (stderr_tail.empty()) return;
  const std::string& last = stderr_tail.back();
  if (last.find(": error: ") != std::string::npos) last_line_ = last;
}

bool FailureEcho::repeats(int local_rank, int stream, const std::string& text) const {
  return !last_line_.empty() && stream == 2 && local_rank != local_rank_ && text == last_line_;
}

}  // namespace lockstep::inline internal
