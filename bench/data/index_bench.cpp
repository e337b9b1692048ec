// The index of a data set of pictures: the time of its start, and its memory. Makes FILES empty
// files (1,280,000) in a temporary folder and removes them: once in 1,000 classes, once with most
// of them in one folder, and a CSV file of the latter. Every start is a process of its own. "first"
// has to list the folders, which the kernel has in its caches; "second" finds them kept; "unkept"
// may keep nothing, as on mounts of FUSE.
//
// usage: bench_index [FILES]
// prints "layout,files,start,seconds,private bytes a file,of which the index,peak MB"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "lockstep/base/unique_fd.h"
#include "lockstep/data/pictures/folder.h"
#include "lockstep/data/pictures/list.h"
#include "lockstep/error.h"

namespace {

using namespace lockstep;
namespace fs = std::filesystem;

/// A value of a file in /proc/self, in bytes.
int64_t own_bytes(const char* file, const std::string& key) {
  std::ifstream lines(fmt::format("/proc/self/{}", file));
  for (std::string word; lines >> word;) {
    int64_t kib = 0;
    if (word == key && lines >> kib) return kib * 1024;
  }
  throw Error(ErrorCode::kUnavailable, fmt::format("/proc/self/{} has no {}", file, key));
}

/// Removes its folder, also after an error.
struct Place {
  fs::path path;
  explicit Place(std::string pattern) : path(::mkdtemp(pattern.data())) {}
  ~Place() { fs::remove_all(path); }
};

void make_class(const fs::path& folder, int64_t count) {
  fs::create_directories(folder);
  const std::string prefix = (folder / folder.filename()).string();
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("{}_{:08}.JPEG", prefix, i * 37);
    if (!UniqueFd(::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644))) {
      throw io_error("create " + name);
    }
  }
  // One that has changed within ten seconds would be listed again.
  fs::last_write_time(folder, fs::file_time_type::clock::now() - std::chrono::hours(1));
}

void make_list(const fs::path& file, const fs::path& folder) {
  std::ofstream list(file);
  for (const auto& one : fs::directory_iterator(folder)) {
    const std::string name = one.path().filename().string();
    for (const auto& picture : fs::directory_iterator(one.path())) {
      list << name << '/' << picture.path().filename().string() << ',' << name << '\n';
    }
  }
}

void measure(const char* layout, const char* start, const std::function<PictureIndex()>& make) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int64_t before = own_bytes("smaps_rollup", "Anonymous:");
    const int64_t resident = own_bytes("status", "VmRSS:");
    const auto begin = std::chrono::steady_clock::now();
    const PictureIndex index = make();
    index.digest();  // as each rank does at its start
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const auto each = [&](auto bytes) {
      return static_cast<double>(bytes) / static_cast<double>(index.size());
    };
    fmt::print("{},{},{},{:.2f},{:.1f},{:.1f},{:.0f}\n", layout, index.size(), start,
               seconds.count(), each(own_bytes("smaps_rollup", "Anonymous:") - before),
               each(index.memory_bytes()),
               static_cast<double>(own_bytes("status", "VmHWM:") - resident) / 1e6);
    std::fflush(stdout);
    ::_exit(0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) < 0) throw io_error("start a process");
  if (status != 0) throw Error(ErrorCode::kInternal, "a start has failed");
}

int bench(int argc, char** argv) {
  const int64_t files = argc > 1 ? std::strtoll(argv[1], nullptr, 10) : 1'280'000;
  if (files < 1'000) throw Error(ErrorCode::kInvalidArgument, "at least 1000 files");
  fmt::print("layout,files,start,seconds,private bytes a file,of which the index,peak MB\n");
  std::fflush(stdout);
  for (const char* layout : {"classes", "flat"}) {
    const Place place((fs::temp_directory_path() / "lockstep-index-XXXXXX").string());
    const fs::path data = place.path / "data";
    const bool is_flat = layout == std::string("flat");
    const int64_t in_one = is_flat ? files * 25 / 32 : 0, classes = is_flat ? 280 : 1'000;
    if (is_flat) make_class(data / "n00000000", in_one);
    for (int64_t i = 0; i < classes; ++i) {
      const int64_t count = (files - in_one) * (i + 1) / classes - (files - in_one) * i / classes;
      make_class(data / fmt::format("n{:08}", 10'000 + i * 17), count);
    }
    fs::last_write_time(data, fs::file_time_type::clock::now() - std::chrono::hours(1));
    for (const char* start : {"first", "second"}) {
      measure(layout, start, [&] { return index_folder(data, {.listing = place.path / "kept"}); });
    }
    measure(layout, "unkept", [&] { return index_folder(data); });
    if (!is_flat) continue;
    make_list(place.path / "list.csv", data);
    measure("list", "any", [&] {
      return read_list(place.path / "list.csv", {data, classes + 1, {}, place.path});
    });
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main("bench_index", bench, argc, argv);
}
