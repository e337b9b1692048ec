#include "lockstep/launch/agent/output/unfinished_lines.h"

#include <algorithm>
#include <utility>

namespace lockstep {

void UnfinishedLines::set(int rank, int stream, std::string text, bool bar, Time now) {
  const auto found = lines_.find({rank, stream});
  if (text.empty()) {
    if (found != lines_.end()) lines_.erase(found);
    return;
  }
  if (found != lines_.end() && found->second.line.text == text) return;
  State& state = lines_[{rank, stream}];
  const bool goes_on = bar || text.starts_with(state.line.text);
  state.line = {rank, stream, std::move(text), bar};
  if (state.fresh && goes_on) return;  // otherwise it is another line, which stands from now on
  state.fresh = true;
  state.due = now + kDelay;
  const auto interval = bar_intervals_[static_cast<size_t>(stream - 1)];
  if (bar && state.shown) state.due = std::max(state.due, state.shown_at + interval);
}

void UnfinishedLines::hold(Time now) {
  for (auto& [key, state] : lines_) {
    if (state.fresh) state.due = std::max(state.due, now + kDelay);
  }
}

std::vector<UnfinishedLines::Line> UnfinishedLines::pass_time(Time now) {
  std::vector<Line> due;
  for (auto& [key, state] : lines_) {
    if (!state.fresh || state.due > now) continue;
    state.fresh = false;
    state.shown = true;
    state.shown_at = now;
    due.push_back(state.line);
  }
  return due;
}

std::optional<UnfinishedLines::Time> UnfinishedLines::due() const {
  std::optional<Time> first;
  for (const auto& [key, state] : lines_) {
    if (state.fresh && (!first || state.due < *first)) first = state.due;
  }
  return first;
}

std::optional<UnfinishedLines::Line> UnfinishedLines::first_shown() const {
  for (const auto& [key, state] : lines_) {
    if (state.shown) return state.line;
  }
  return std::nullopt;
}

}  // namespace lockstep
