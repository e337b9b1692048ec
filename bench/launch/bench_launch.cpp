// Cost of the launcher: two processes of /bin/true started by `lockstep run`, beside a bare fork
// and exec of the same. They alternate, so that both see the same machine.
//
//   bench_launch [--rounds N] [--ranks P] [--json FILE]

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/error.h"

namespace {

using lockstep::Error;
using lockstep::ErrorCode;
using Words = std::vector<std::string>;

pid_t start(const Words& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  if (pid < 0) throw lockstep::io_error("fork");
  return pid;
}

/// Microseconds from the first fork to the last end of `copies` processes.
double time_us(const Words& words, int copies) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<pid_t> pids;
  for (int i = 0; i < copies; ++i) pids.push_back(start(words));
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (status != 0) throw Error(ErrorCode::kInternal, words[0] + " failed");
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  return took.count();
}

struct Sample {
  std::string name;
  std::vector<double> times_us;

  double at(double part) {
    std::sort(times_us.begin(), times_us.end());
    return times_us[static_cast<size_t>(part * static_cast<double>(times_us.size() - 1))];
  }
};

struct Options {
  int rounds = 200;
  int ranks = 2;
  std::string json;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw Error(ErrorCode::kInvalidArgument, name + " needs a value");
    const std::string value = argv[i + 1];
    if (name == "--rounds") {
      options.rounds = static_cast<int>(lockstep::parse_int(value, 1, 100000, name));
    } else if (name == "--ranks") {
      options.ranks = static_cast<int>(lockstep::parse_int(value, 1, 1024, name));
    } else if (name == "--json") {
      options.json = value;
    } else {
      throw Error(ErrorCode::kInvalidArgument, "unknown option " + name);
    }
  }
  return options;
}

int body(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const Words program = {"/bin/true"};
  const Words launcher = {(folder / "lockstep").string(), "run", "--nproc_per_node",
                          std::to_string(options.ranks), "/bin/true"};
  std::vector<Sample> samples = {{"fork and exec", {}}, {"lockstep run", {}}};
  for (int round = 0; round < options.rounds; ++round) {
    samples[0].times_us.push_back(time_us(program, options.ranks));
    samples[1].times_us.push_back(time_us(launcher, 1));
  }
  nlohmann::json results = nlohmann::json::array();
  fmt::print("{} x /bin/true, {} rounds, microseconds\n", options.ranks, options.rounds);
  fmt::print("{:<14} {:>8} {:>8} {:>8}\n", "", "min", "p50", "p90");
  for (Sample& sample : samples) {
    fmt::print("{:<14} {:>8.0f} {:>8.0f} {:>8.0f}\n", sample.name, sample.at(0), sample.at(0.5),
               sample.at(0.9));
    results.push_back({{"bench", "launch"},
                       {"name", sample.name},
                       {"ranks", options.ranks},
                       {"min_us", sample.at(0)},
                       {"p50_us", sample.at(0.5)},
                       {"p90_us", sample.at(0.9)}});
  }
  fmt::print("ratio of medians {:.2f}\n", samples[1].at(0.5) / samples[0].at(0.5));
  if (!options.json.empty()) lockstep::write_file_atomically(options.json, results.dump(2) + "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("bench_launch", body, argc, argv);
}
