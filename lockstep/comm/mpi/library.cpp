#include "lockstep/comm/mpi/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "lockstep/base/installation.h"

namespace lockstep::mpi {
namespace {

constexpr const char* kName = "lockstep_mpi.so";

std::vector<std::string> places() {
  if (const char* const named = std::getenv("LOCKSTEP_MPI_LIBRARY")) return {named};
  std::vector<std::string> all;
  for (const auto& folder : installed_program_folders()) {
    all.push_back((folder / kName).string());
    all.push_back((folder.parent_path() / LOCKSTEP_LIBRARY_FOLDER / "lockstep" / kName).string());
  }
  return all;
}

struct Loaded {
  const LockstepMpiApi* api = nullptr;
  std::string why_not;
};

Loaded open_library(const std::string& path) {
  // Global: Open MPI's plug-ins search for its symbols there.
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) return {nullptr, ::dlerror()};
  using GetApi = const LockstepMpiApi* (*)();
  const auto get = reinterpret_cast<GetApi>(::dlsym(handle, "lockstep_mpi_api"));
  if (get == nullptr) return {nullptr, path + " is not Lockstep's"};
  if (get()->version != LOCKSTEP_MPI_SHIM_VERSION)
    return {nullptr, path + " is of another version"};
  return {get(), ""};
}

Loaded search() {
  Loaded found;
  for (const auto& path : places()) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    found = open_library(path);
    if (found.api != nullptr) return found;
  }
  if (found.why_not.empty()) {
    found.why_not = fmt::format(
        "{} is not in {} (it is built where MPI is found; LOCKSTEP_MPI_LIBRARY names another "
        "place)",
        kName, fmt::join(places(), " or "));
  }
  return found;
}

}  // namespace

const LockstepMpiApi* load_library(std::string* why_not) {
  static const Loaded loaded = search();
  *why_not = loaded.why_not;
  return loaded.api;
}

bool launched_by_mpi(std::string* why_not) {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  *why_not = "no MPI launcher started this process (mpirun, or srun with --mpi)";
  return false;
}

}  // namespace lockstep::mpi
