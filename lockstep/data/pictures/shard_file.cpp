#include "lockstep/data/pictures/shard_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lockstep/base/file.h"
#include "lockstep/error.h"

namespace lockstep {

ShardFile::ShardFile(std::filesystem::path path)
    : path_(std::move(path)), fd_(open_to_read(path_)) {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) {
    throw Error(ErrorCode::kIo, fmt::format("read {}: {}", path_.string(), std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} is no file", path_.string()));
  }
  state_ = {static_cast<uint64_t>(status.st_size),
            int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

size_t ShardFile::read(uint64_t at, char* to, size_t count) const {
  size_t done = 0;
  while (done < count) {
    const auto got = ::pread(fd_.get(), to + done, count - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw Error(ErrorCode::kIo, fmt::format("read {}: {}", path_.string(), std::strerror(errno)));
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

TarBytes ShardFile::tar() const {
  return {state_.size, [this](uint64_t at, char* to, size_t count) { return read(at, to, count); },
          path_.string()};
}

}  // namespace lockstep
