#pragma once
// libdw, loaded at run time.

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <string>

namespace lockstep::inline internal {

/// The functions of libdw that are used here.
struct Libdw {
  decltype(&::dwfl_begin) begin;
  decltype(&::dwfl_end) end;
  decltype(&::dwfl_errmsg) errmsg;
  decltype(&::dwfl_linux_proc_find_elf) linux_proc_find_elf;
  decltype(&::dwfl_linux_proc_report) linux_proc_report;
  decltype(&::dwfl_report_end) report_end;
  decltype(&::dwfl_linux_proc_attach) linux_proc_attach;
  decltype(&::dwfl_attach_state) attach_state;
  decltype(&::dwfl_thread_state_registers) thread_state_registers;
  decltype(&::dwfl_thread_state_register_pc) thread_state_register_pc;
  decltype(&::dwfl_getthread_frames) getthread_frames;
  decltype(&::dwfl_frame_pc) frame_pc;
  decltype(&::dwfl_addrmodule) addrmodule;
  decltype(&::dwfl_module_addrname) module_addrname;
  decltype(&::dwfl_module_info) module_info;
  decltype(&::dwfl_module_eh_cfi) module_eh_cfi;
  decltype(&::dwarf_cfi_addrframe) cfi_addrframe;

  /// Null if it is not installed; `why_not` then receives the reason. Loaded once per process.
  static const Libdw* load(std::string* why_not);
};

}  // namespace lockstep::inline internal
