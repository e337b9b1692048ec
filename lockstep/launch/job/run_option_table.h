#pragma once
// The options of `lockstep run` as a table: names, help, and the function that takes each value.

#include <string>
#include <vector>

#include "lockstep/base/options.h"
#include "lockstep/launch/job/run_options.h"

namespace lockstep::inline internal {

/// Values of the options before they are combined.
struct RunOptionsDraft {
  RunOptions options;
  const std::function<HostResources()>* resources = nullptr;
  bool backend_given = false;
  bool standalone = false;
  bool nnodes_given = false;
  int local_worker_num = 0;
  bool master_port_given = false;
  bool streams_given = false;
  bool module = false;
  bool no_python = false;
  bool run_path = false;
};

using RunOption = Option<RunOptionsDraft>;
using RunOptionGroup = OptionGroup<RunOptionsDraft>;  ///< Without a title: not listed.

/// All of them, in the order of --help.
const std::vector<RunOptionGroup>& run_option_groups();

/// The same without groups. Values are applied in this order.
const std::vector<RunOption>& run_option_table();

/// Applies the rules about several options, and returns the options. Errors: kInvalidArgument.
RunOptions put_together(RunOptionsDraft draft);

/// Throws kInvalidArgument.
[[noreturn]] void refuse_options(const std::string& text);

}  // namespace lockstep::inline internal
