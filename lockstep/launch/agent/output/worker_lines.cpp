#include "lockstep/launch/agent/output/worker_lines.h"

#include <fmt/format.h>

namespace lockstep {

WorkerLines::WorkerLines(const WorkerLinesOptions& options, Console* console)
    : options_(options),
      console_(console),
      folder_(options.num_ranks, options.fold),
      out_copies_(options.out_filters, options.out_copies),
      err_copies_(options.err_filters, options.err_copies),
      rates_(static_cast<size_t>(options.num_ranks), LineRate(options.lines_a_second)) {
  for (int rank = 0; rank < options.num_ranks; ++rank) {
    out_prefix_.push_back(line_prefix(options.out, {rank}));
    err_prefix_.push_back(line_prefix(options.err, {rank}));
  }
}

void WorkerLines::line(int local_rank, int stream, const std::string& text) {
  copy(local_rank, stream, text);
  const auto verdict = rates_[static_cast<size_t>(local_rank)].line(now_);
  if (!verdict.show) return;
  if (verdict.dropped > 0) tell_dropped(local_rank, verdict.dropped);
  show(folder_.add(local_rank, stream, text, now_));
}

/// Into a file go all lines, however many a second, and no colours.
void WorkerLines::copy(int local_rank, int stream, const std::string& text) {
  if (options_.out_filters.empty() && options_.err_filters.empty()) return;
  PrefixStyle style = options_.out;
  style.color = false;
  (stream == 1 ? out_copies_ : err_copies_).line(line_prefix(style, {local_rank}), text);
}

void WorkerLines::pass_time(Time now) {
  show(folder_.pass_time(now));
}

void WorkerLines::flush() {
  show(folder_.flush());
  for (size_t rank = 0; rank < rates_.size(); ++rank) {
    const long dropped = rates_[rank].take_dropped();
    if (dropped > 0) tell_dropped(static_cast<int>(rank), dropped);
  }
}

void WorkerLines::tell_dropped(int local_rank, long count) {
  show(folder_.flush());  // in its place among the rank's lines
  console_->put(2, prefix(2, {local_rank}) +
                       fmt::format("lockstep run: {} lines of this rank are not shown (--log_rate "
                                   "{}); files of --log_dir have all",
                                   count, options_.lines_a_second));
}

std::string WorkerLines::prefix(int stream, const std::vector<int>& local_ranks) const {
  if (local_ranks.size() > 1) {
    return line_prefix(stream == 1 ? options_.out : options_.err, local_ranks);
  }
  return (stream == 1 ? out_prefix_ : err_prefix_)[static_cast<size_t>(local_ranks[0])];
}

void WorkerLines::show(const std::vector<FoldedLine>& lines) {
  for (const FoldedLine& line : lines) {
    console_->put(line.stream, prefix(line.stream, line.ranks) + line.text);
  }
}

}  // namespace lockstep
