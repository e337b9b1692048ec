#pragma once
// The files that a job's workers have written so far (`lockstep logs`).

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/process/line_splitter.h"

namespace lockstep {

/// Reads ATTEMPT_FOLDER/LOCAL_RANK/{stdout,stderr}.log from where it stopped before.
class LogReader {
 public:
  explicit LogReader(std::string attempt_folder) : folder_(std::move(attempt_folder)) {}

  struct Line {
    int local_rank = 0;
    int stream = 1;
    std::string text;
  };

  using TakeLine = std::function<void(const Line& line)>;
  /// Passes the lines added since the last call to `take`: rank by rank, stdout first. `last`: also
  /// a line without a newline. Needs little memory for files of any length.
  void read(const std::vector<int>& local_ranks, bool last, const TakeLine& take);

  const std::string& folder() const { return folder_; }

 private:
  struct File {
    UniqueFd fd;
    LineSplitter splitter;
  };
  void read_file(int local_rank, int stream, bool last, const TakeLine& take);

  std::string folder_;
  std::map<std::pair<int, int>, File> files_;
};

}  // namespace lockstep
