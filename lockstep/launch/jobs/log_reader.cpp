#include "lockstep/launch/jobs/log_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

namespace lockstep {

void LogReader::read(const std::vector<int>& local_ranks, bool last, const TakeLine& take) {
  for (const int local_rank : local_ranks) {
    for (const int stream : {1, 2}) read_file(local_rank, stream, last, take);
  }
}

void LogReader::read_file(int local_rank, int stream, bool last, const TakeLine& take) {
  File& file = files_[{local_rank, stream}];
  if (!file.fd) {
    const auto path =
        fmt::format("{}/{}/{}.log", folder_, local_rank, stream == 1 ? "stdout" : "stderr");
    file.fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.fd) return;  // this stream has no file, or none yet
  }
  std::string buffer(64 << 10, '\0');
  for (ssize_t got = 0; (got = ::read(file.fd.get(), buffer.data(), buffer.size())) > 0;) {
    for (auto& text :
         file.splitter.feed(std::string_view(buffer).substr(0, static_cast<size_t>(got)))) {
      take({local_rank, stream, std::move(text)});
    }
  }
  if (!last) return;
  std::string rest = file.splitter.finish();
  if (!rest.empty()) take({local_rank, stream, std::move(rest)});
}

}  // namespace lockstep
