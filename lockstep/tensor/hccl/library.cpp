#include "lockstep/tensor/hccl/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/text.h"

namespace lockstep::hccl {
namespace {

struct LoadedLibrary {
  Functions functions{};
  std::string why_not;  // empty: it is loaded
};

/// Looks functions up in all libraries; remembers the first that is missing.
class SymbolFinder {
 public:
  explicit SymbolFinder(std::vector<void*> libraries) : libraries_(std::move(libraries)) {}

  template <class Function>
  void find(Function& function, const char* name, bool must_exist = true) {
    for (void* const library : libraries_) {
      function = reinterpret_cast<Function>(::dlsym(library, name));
      if (function != nullptr) return;
    }
    if (must_exist && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  std::vector<void*> libraries_;
  std::string missing_;
};

std::string find_all(Functions& to, std::vector<void*> libraries) {
  SymbolFinder finder(std::move(libraries));
#define LOCKSTEP_FIND(name) finder.find(to.name, #name)
  LOCKSTEP_FIND(aclInit);
  LOCKSTEP_FIND(aclrtGetDeviceCount);
  LOCKSTEP_FIND(aclrtSetDevice);
  LOCKSTEP_FIND(aclrtGetSocName);
  LOCKSTEP_FIND(aclGetRecentErrMsg);
  LOCKSTEP_FIND(aclrtCreateStream);
  LOCKSTEP_FIND(aclrtDestroyStream);
  LOCKSTEP_FIND(aclrtSynchronizeStreamWithTimeout);
  LOCKSTEP_FIND(HcclGetRootInfo);
  LOCKSTEP_FIND(HcclCommInitRootInfo);
  LOCKSTEP_FIND(HcclCommDestroy);
  LOCKSTEP_FIND(HcclGetCommAsyncError);
  LOCKSTEP_FIND(HcclGetErrorString);
  LOCKSTEP_FIND(HcclAllReduce);
  LOCKSTEP_FIND(HcclBroadcast);
  LOCKSTEP_FIND(HcclAllGather);
  LOCKSTEP_FIND(HcclReduceScatter);
  LOCKSTEP_FIND(HcclSend);
  LOCKSTEP_FIND(HcclRecv);
#undef LOCKSTEP_FIND
  finder.find(to.aclrtStreamAbort, "aclrtStreamAbort", /*must_exist=*/false);
  return finder.missing();
}

LoadedLibrary open_libraries() {
  LoadedLibrary loaded;
  std::vector<std::string> paths = {"libascendcl.so", "libhccl.so"};
  if (const auto named = env("LOCKSTEP_HCCL_LIBRARY")) paths = {*named};
  std::vector<void*> libraries;
  for (const auto& path : paths) {
    libraries.push_back(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (libraries.back() != nullptr) continue;
    loaded.why_not = fmt::format("{}; CANN's set_env.sh names its folder", ::dlerror());
    return loaded;
  }
  const auto missing = find_all(loaded.functions, libraries);
  if (!missing.empty()) {
    loaded.why_not = fmt::format("{} has no {}", fmt::join(paths, " and "), missing);
    return loaded;
  }
  const int error = loaded.functions.aclInit(nullptr);
  if (error != kSuccess && error != kAlreadyInitialized) {
    loaded.why_not = "aclInit: " + describe(loaded.functions, error);
  }
  return loaded;
}

}  // namespace

const Functions* load_library(std::string* why_not) {
  static const LoadedLibrary loaded = open_libraries();
  *why_not = loaded.why_not;
  return loaded.why_not.empty() ? &loaded.functions : nullptr;
}

std::string describe(const Functions& functions, int error) {
  constexpr int kHcclErrors = 100;  // the runtime's begin at 100000
  const char* const name = error < kHcclErrors ? functions.HcclGetErrorString(error) : nullptr;
  const char* const recent = functions.aclGetRecentErrMsg();
  std::string text = fmt::format("error {}", error);
  if (name != nullptr) text = fmt::format("{} ({})", name, text);
  if (recent == nullptr) return text;
  return fmt::format("{}: {}", text, first_line(recent));
}

}  // namespace lockstep::hccl
