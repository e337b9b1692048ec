#include "lockstep/comm/native/native_group.h"

#include "lockstep/comm/native/shm/shm_group.h"
#include "lockstep/comm/native/two_level_group.h"
#include "lockstep/comm/topology.h"

namespace lockstep {

std::unique_ptr<GroupImpl> make_native_group(const GroupSpec& spec, Deadline deadline) {
  const Topology topology = make_topology(spec.host_ids);
  if (topology.num_hosts() == 1) return make_shm_group(spec, deadline);
  return make_two_level_group(spec, deadline);
}

}  // namespace lockstep
