#include "apps/lockstep/log_folders.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/base/number.h"
#include "lockstep/comm/flight/ring.h"

namespace lockstep::app {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failure;
  std::error_code unreadable;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end;
       it.increment(failure)) {
    if (it->is_directory(unreadable)) found.push_back(it->path());
  }
  return found;
}

bool has_recorders(const fs::path& folder) {
  std::error_code failure;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end;
       it.increment(failure)) {
    if (it->path().extension() == kFlightSuffix) return true;
  }
  return false;
}

bool is_attempt(const fs::path& folder) {
  return folder.filename().string().starts_with("attempt_") && has_recorders(folder);
}

/// The same for the folders of one attempt of one run, on any node.
std::pair<std::string, std::string> attempt_of(const fs::path& folder) {
  std::string run = folder.parent_path().filename().string();
  const size_t node = run.rfind("_node");
  const size_t digits = node == std::string::npos ? node : node + std::string_view("_node").size();
  if (digits < run.size() && all_digits(std::string_view(run).substr(digits))) run.resize(node);
  return {run, folder.filename().string()};
}

}  // namespace

NewestAttempt newest_attempt(const fs::path& folder) {
  // Gives "." and "DIR/" a name, too.
  const auto whole = fs::absolute(folder / ".").lexically_normal().parent_path();
  std::vector<fs::path> attempts;
  const auto add = [&](const fs::path& parent) {
    for (const auto& each : folders_in(parent)) {
      if (is_attempt(each)) attempts.push_back(each);
    }
  };
  add(whole);
  for (const auto& run : folders_in(whole)) add(run);
  std::sort(attempts.begin(), attempts.end());
  NewestAttempt newest;
  const auto written = [](const fs::path& path) {
    std::error_code gone;
    return fs::last_write_time(path, gone);
  };
  const auto last = std::max_element(
      attempts.begin(), attempts.end(),
      [&](const auto& one, const auto& other) { return written(one) < written(other); });
  for (const auto& each : attempts) {
    auto& list = attempt_of(each) == attempt_of(*last) ? newest.folders : newest.others;
    list.push_back(each);
  }
  return newest;
}

}  // namespace lockstep::app
