// `lockstep doctor backends`. If the program lockstep-doctor-backends is installed, it does the
// work, because it includes libtorch's back ends.

#include <utility>

#include "apps/lockstep/backend_table.h"
#include "apps/lockstep/verbs.h"

namespace lockstep::app {

int doctor_backends(const std::vector<std::string>& args) {
  execute_beside("lockstep-doctor-backends", args);
  auto reports = report_backends();
  for (const auto& [name, summary] :
       {std::pair{"c10d:gloo", "libtorch's own Gloo"},
        std::pair{"c10d:nccl", "libtorch's own NCCL"}, std::pair{"hccl", "Ascend's HCCL"}}) {
    reports.push_back({name, summary, false, false,
                       "lockstep-doctor-backends, which tests it, is neither beside lockstep nor "
                       "in PATH; was this built without libtorch?"});
  }
  return print_backends(reports, args);
}

}  // namespace lockstep::app
