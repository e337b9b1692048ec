#include "lockstep/launch/agent/output/line_copies.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/error.h"

namespace lockstep {

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

}  // namespace lockstep
