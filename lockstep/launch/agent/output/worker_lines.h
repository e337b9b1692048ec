#pragma once
// All workers' lines on their way to the console: filtered, folded, limited and labelled.

#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/agent/console.h"
#include "lockstep/launch/agent/output/line_copies.h"
#include "lockstep/launch/agent/output/line_folder.h"
#include "lockstep/launch/agent/output/line_prefix.h"
#include "lockstep/launch/agent/output/line_rate.h"

namespace lockstep {

struct WorkerLinesOptions {
  PrefixStyle out;    ///< Of stdout's lines.
  PrefixStyle err;    ///< Of stderr's.
  int num_ranks = 1;  ///< Of this node.
  bool fold = true;
  int lines_a_second = 0;  ///< Of each rank; 0: all.
  /// A line with one of the filters in it is also in that file; of stderr's likewise.
  std::vector<std::string> out_filters, err_filters;
  std::string out_copies, err_copies;  ///< Empty: nowhere.
};

class WorkerLines {
 public:
  using Time = LineFolder::Time;

  /// `console` outlives this. Errors: kIo (a file of copies).
  WorkerLines(const WorkerLinesOptions& options, Console* console);

  /// The lines that follow are of `now`: what is read in one go was there together, however long
  /// reading takes.
  void are_of(Time now) { now_ = now; }
  void line(int local_rank, int stream, const std::string& text);
  void pass_time(Time now);
  /// Puts everything on the console, also how much was dropped and not told.
  void flush();
  /// When to call pass_time().
  std::optional<Time> due() const { return folder_.due(); }

 private:
  void copy(int local_rank, int stream, const std::string& text);
  void show(const std::vector<FoldedLine>& lines);
  std::string prefix(int stream, const std::vector<int>& local_ranks) const;
  void tell_dropped(int local_rank, long count);

  WorkerLinesOptions options_;
  Console* console_;
  LineFolder folder_;
  LineCopies out_copies_, err_copies_;
  Time now_ = std::chrono::steady_clock::now();
  std::vector<LineRate> rates_;                       ///< By local rank.
  std::vector<std::string> out_prefix_, err_prefix_;  ///< Of single ranks.
};

}  // namespace lockstep
