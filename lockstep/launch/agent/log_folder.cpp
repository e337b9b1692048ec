#include "lockstep/launch/agent/log_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "lockstep/error.h"

namespace lockstep {
namespace {

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) throw io_error("make folder " + path);
}

}  // namespace

std::string make_run_folder(const std::string& log_dir, const JobPlan& plan) {
  std::error_code failure;
  std::filesystem::create_directories(log_dir, failure);
  if (failure) {
    throw Error(ErrorCode::kIo, fmt::format("make folder {}: {}", log_dir, failure.message()));
  }
  std::string name = plan.run_id;
  if (plan.num_nodes > 1) name += fmt::format("_node{}", plan.node_rank);
  std::string path = log_dir + "/" + name;
  for (int copy = 2; ::mkdir(path.c_str(), 0777) != 0; ++copy) {
    if (errno != EEXIST) throw io_error("make folder " + path);
    path = fmt::format("{}/{}_{}", log_dir, name, copy);
  }
  return path;
}

std::string make_attempt_folder(const std::string& run_folder, const JobPlan& plan) {
  auto attempt = fmt::format("{}/attempt_{}", run_folder, plan.restart_count);
  std::error_code ignored;
  if (std::filesystem::exists(attempt, ignored)) {
    attempt += fmt::format("_generation_{}", plan.generation);
  }
  make_folder(attempt);
  for (int local_rank = 0; local_rank < plan.ranks.local_size; ++local_rank) {
    make_folder(fmt::format("{}/{}", attempt, local_rank));
  }
  return attempt;
}

}  // namespace lockstep
