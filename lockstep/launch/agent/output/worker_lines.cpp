#include "lockstep/launch/agent/output/worker_lines.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/counted.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// Without a terminal each state of a bar becomes a line.
std::chrono::milliseconds bar_interval(const ConsoleKind& console, int stream) {
  if (console.terminal(stream)) return UnfinishedLines::kDelay;
  return std::chrono::seconds(30);
}

const char* variable(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? nullptr : found->second.c_str();
}

}  // namespace

LineChoice LineRate::line(Time now) {
  if (limit_ == 0) return {};
  if (filled_ != Time{}) {
    const double seconds = std::chrono::duration<double>(now - filled_).count();
    left_ = std::min<double>(limit_, left_ + seconds * limit_);
  }
  filled_ = now;
  // Once lines are dropped, wait for a tenth of a second's worth. Otherwise every other line would
  // be shown, each with a count.
  const double needed = dropped_ > 0 ? std::max(1.0, limit_ / 10.0) : 1.0;
  if (left_ < needed) {
    ++dropped_;
    return {false, 0};
  }
  left_ -= 1;
  return {true, take_dropped()};
}

long LineRate::take_dropped() {
  return std::exchange(dropped_, 0);
}

LineCopies::LineCopies(std::vector<std::string> filters, std::string path)
    : filters_(std::move(filters)), path_(std::move(path)) {
  if (filters_.empty() || path_.empty()) return;
  file_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file_) throw io_error("open " + path_);
}

void LineCopies::line(const std::string& prefix, const std::string& text) {
  if (!file_) return;
  const auto in_text = [&](const std::string& filter) {
    return text.find(filter) != std::string::npos;
  };
  if (std::none_of(filters_.begin(), filters_.end(), in_text)) return;
  const std::string whole = prefix + text + "\n";
  try {
    write_all(file_.get(), whole.data(), whole.size(), path_);
  } catch (const Error& error) {
    log_warn(std::string(error.what()) + "; no more lines are copied there");
    file_.reset();
  }
}

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

WorkerLines::WorkerLines(const WorkerLinesOptions& options, Console* console)
    : options_(options),
      console_(console),
      folder_(options.num_ranks, options.fold),
      out_copies_(options.out_filters, options.out_copies),
      err_copies_(options.err_filters, options.err_copies),
      unfinished_({bar_interval(options.console, 1), bar_interval(options.console, 2)}),
      rates_(static_cast<size_t>(options.num_ranks), LineRate(options.lines_a_second)) {
  for (int rank = 0; rank < options.num_ranks; ++rank) {
    out_prefix_.push_back(line_prefix(options.out, {rank}));
    err_prefix_.push_back(line_prefix(options.err, {rank}));
  }
}

void WorkerLines::line(int local_rank, int stream, const std::string& text) {
  copy(local_rank, stream, text);
  if (options_.raw) return;
  if (finish_open(local_rank, stream, text)) return;
  const auto choice = rates_[static_cast<size_t>(local_rank)].line(now_);
  if (!choice.show) return;
  if (choice.dropped > 0) report_dropped(local_rank, choice.dropped);
  if (!folder_.holds(stream, text) && echo_.repeats(local_rank, stream, text)) return;
  show(folder_.add(local_rank, stream, text, now_));
}

void WorkerLines::failed(int local_rank, const std::vector<std::string>& stderr_tail) {
  if (options_.fold) echo_ = FailureEcho(local_rank, stderr_tail);
}

/// A file of copies gets all lines, at any rate, without colours.
void WorkerLines::copy(int local_rank, int stream, const std::string& text) {
  if (options_.out_filters.empty() && options_.err_filters.empty()) return;
  PrefixStyle style = options_.out;
  style.color = false;
  (stream == 1 ? out_copies_ : err_copies_).line(line_prefix(style, {local_rank}), text);
}

void WorkerLines::pass_time(Time now, bool reading) {
  show(folder_.pass_time(now));
  if (!reading) unfinished_.hold(now);
  // Uses the time of the last look for input, however long the output took.
  const auto lines = unfinished_.pass_time(now_);
  for (const auto& line : lines) show_unfinished(line);
  if (!lines.empty()) draw_foot();
}

std::optional<WorkerLines::Time> WorkerLines::due() const {
  const auto held = folder_.due();
  const auto begun = unfinished_.due();
  if (!held || !begun) return held ? held : begun;
  return std::min(*held, *begun);
}

void WorkerLines::bytes(int stream, std::string_view read) {
  if (options_.raw) console_->append(stream, read);
}

void WorkerLines::unfinished(int local_rank, int stream, std::string text, bool bar) {
  if (options_.raw) return;
  const bool over = text.empty();
  unfinished_.set(local_rank, stream, std::move(text), bar, now_);
  if (over) draw_foot();
}

/// The line's beginning has been shown with nothing after it: only its rest is printed.
bool WorkerLines::finish_open(int local_rank, int stream, const std::string& text) {
  Opened& opened = opened_[static_cast<size_t>(stream - 1)];
  if (opened.local_rank != local_rank) return false;
  const Opened begun = std::exchange(opened, {});
  if (!console_->open(stream) || !text.starts_with(begun.text)) return false;
  console_->put_rest(stream, text.substr(begun.text.size()));
  return true;
}

/// A terminal shows them at its foot.
void WorkerLines::show_unfinished(const UnfinishedLines::Line& line) {
  if (options_.console.terminal(line.stream)) return;
  if (line.bar) return show(folder_.add(line.rank, line.stream, line.text, now_));
  show(folder_.flush());  // in its place among the rank's lines
  Opened& opened = opened_[static_cast<size_t>(line.stream - 1)];
  const bool goes_on = opened.local_rank == line.rank && console_->open(line.stream) &&
                       line.text.starts_with(opened.text);
  const size_t shown = goes_on ? opened.text.size() : 0;
  if (!goes_on && console_->open(line.stream)) console_->put_rest(line.stream, "");
  console_->append(line.stream,
                   (goes_on ? "" : prefix(line.stream, {line.rank})) + line.text.substr(shown));
  opened = {line.rank, line.text};
}

int WorkerLines::columns(int stream) const {
  if (!options_.console.terminal(stream)) return 0;
  PrefixStyle style = stream == 1 ? options_.out : options_.err;
  style.color = false;
  const int all = terminal_columns(stream);
  return std::max(20, (all > 0 ? all : 80) - static_cast<int>(line_prefix(style, {0}).size()));
}

void WorkerLines::draw_foot() {
  const auto line = unfinished_.first_shown();
  for (const int stream : {1, 2}) {
    if (!options_.console.terminal(stream)) continue;
    const bool here = line && line->stream == stream;
    if (!here && line && options_.console.terminal(line->stream)) continue;
    const int columns = std::max(terminal_columns(stream), 20) - 1;
    console_->set_foot(stream,
                       here ? fitting(prefix(stream, {line->rank}) + line->text, columns) : "");
  }
}

void WorkerLines::flush() {
  show(folder_.flush());
  for (size_t rank = 0; rank < rates_.size(); ++rank) {
    const long dropped = rates_[rank].take_dropped();
    if (dropped > 0) report_dropped(static_cast<int>(rank), dropped);
  }
}

void WorkerLines::report_dropped(int local_rank, long count) {
  show(folder_.flush());  // in its place among the rank's lines
  console_->put(2,
                prefix(2, {local_rank}) +
                    fmt::format("lockstep run: {} of this rank not shown (--log_rate {}); files of "
                                "--log_dir have all",
                                counted(count, "line"), options_.lines_a_second));
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

bool shows_raw(const RunOptions& options, const Environment& environment) {
  if (options.raw) return true;
  const bool one_rank = options.num_nodes == 1 && options.nproc_per_node == 1;
  return one_rank && !options.started_by_starter && !options.log_rate &&
         variable(environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE") == nullptr;
}

WorkerLinesOptions job_lines(const RunOptions& options, const Environment& environment,
                             const JobAssignment& assignment, const ConsoleKind& console,
                             const std::string& attempt_folder) {
  PrefixStyle style;
  style.first_rank = assignment.ranks.first_rank;
  style.world_size = assignment.world_size;
  if (assignment.num_nodes > 1) style.host = assignment.host;
  style.host_width = style.host.size();
  style.role = options.role;
  const char* pattern = variable(environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  if (pattern != nullptr) style.pattern = pattern;
  const bool raw = shows_raw(options, environment);
  style.none = raw;

  WorkerLinesOptions lines;
  lines.out = style;
  lines.err = style;
  const char* no_color = variable(environment, "NO_COLOR");
  const char* term = variable(environment, "TERM");
  lines.out.color = wants_color(console.out_terminal, no_color, term);
  lines.err.color = wants_color(console.err_terminal, no_color, term);
  lines.num_ranks = assignment.ranks.local_size;
  lines.fold = !options.no_fold && !raw;
  lines.raw = raw && !options.started_by_starter;  // a starter reads whole lines
  lines.console = console;
  lines.lines_a_second =
      options.log_rate.value_or(console.out_terminal ? kTerminalLinesASecond : 0);
  if (attempt_folder.empty()) return lines;
  lines.out_filters = options.stdout_filters;
  lines.err_filters = options.stderr_filters;
  lines.out_copies = attempt_folder + "/filtered_stdout.log";
  lines.err_copies = attempt_folder + "/filtered_stderr.log";
  return lines;
}

}  // namespace lockstep::inline internal
