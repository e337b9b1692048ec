#include "lockstep/comm/flight/libdw.h"

#include <dlfcn.h>

#include <optional>

namespace lockstep::inline internal {
namespace {

constexpr const char* kLibrary = "libdw.so.1";

struct Loaded {
  std::optional<Libdw> library;
  std::string why_not;
};

Loaded open_libdw() {
  Loaded loaded;
  void* const handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    loaded.why_not = "libdw (of elfutils) is not installed";
    return loaded;
  }
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
    if (function == nullptr) loaded.why_not = std::string(kLibrary) + " has no " + name;
  };
  Libdw library{};
  find(library.begin, "dwfl_begin");
  find(library.end, "dwfl_end");
  find(library.errmsg, "dwfl_errmsg");
  find(library.linux_proc_find_elf, "dwfl_linux_proc_find_elf");
  find(library.linux_proc_report, "dwfl_linux_proc_report");
  find(library.report_end, "dwfl_report_end");
  find(library.linux_proc_attach, "dwfl_linux_proc_attach");
  find(library.attach_state, "dwfl_attach_state");
  find(library.thread_state_registers, "dwfl_thread_state_registers");
  find(library.thread_state_register_pc, "dwfl_thread_state_register_pc");
  find(library.getthread_frames, "dwfl_getthread_frames");
  find(library.frame_pc, "dwfl_frame_pc");
  find(library.addrmodule, "dwfl_addrmodule");
  find(library.module_addrname, "dwfl_module_addrname");
  find(library.module_info, "dwfl_module_info");
  find(library.module_eh_cfi, "dwfl_module_eh_cfi");
  find(library.cfi_addrframe, "dwarf_cfi_addrframe");
  if (loaded.why_not.empty()) loaded.library = library;
  return loaded;
}

}  // namespace

const Libdw* Libdw::load(std::string* why_not) {
  static const Loaded loaded = open_libdw();
  *why_not = loaded.why_not;
  return loaded.library ? &*loaded.library : nullptr;
}

}  // namespace lockstep::inline internal
