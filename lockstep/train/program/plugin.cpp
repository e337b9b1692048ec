#include "lockstep/train/program/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/recipe.h"

namespace lockstep::inline internal {
namespace {

template <typename Made>
void check_version(const Registry<Made>& registry, const std::string& path) {
  for (const auto& part : registry.parts()) {
    if (part.version == kPartVersion) continue;
    throw Error(ErrorCode::kMismatch,
                fmt::format("--plugin {}: it was built with headers of another Lockstep (parts of "
                            "version {}, not {}); build it anew",
                            path, part.version, kPartVersion));
  }
}

void load_plugin(const std::string& path) {
  // Without a slash the loader would search its own folders, not this one.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  if (::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--plugin {}: cannot be loaded: {}", path, ::dlerror()));
  }
  check_version(tasks(), path);
  check_version(networks(), path);
  check_version(backbones(), path);
  check_version(losses(), path);
  check_version(metrics(), path);
  check_version(datasets(), path);
  check_version(transforms(), path);
  check_version(optimizers(), path);
  check_version(schedules(), path);
  check_version(callbacks(), path);
}

}  // namespace

void load_plugins(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) load_plugin(path);
}

}  // namespace lockstep::inline internal
