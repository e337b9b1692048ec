// horovodrun with Gloo. Source: horovod/runner/gloo_run.py of Horovod.
#include "lockstep/world/detect/source.h"

namespace lockstep {

std::optional<Identity> read_horovod(const Reader& read) {
  const std::string because = "another variable of horovodrun is";
  Identity id;
  id.size = read.need_number("HOROVOD_SIZE", because, 1, kMaxRanks);
  id.rank = read.need_number("HOROVOD_RANK", because, 0, kMaxRanks);
  id.local_size = read.need_number("HOROVOD_LOCAL_SIZE", because, 1, kMaxRanks);
  id.local_rank = read.need_number("HOROVOD_LOCAL_RANK", because, 0, kMaxRanks);
  // CROSS counts the hosts that have this local rank: on uneven hosts not all.
  const bool one_node = id.local_size == id.size;
  id.num_nodes = one_node ? 1 : kNotTold;
  id.node_rank = one_node ? 0 : kNotTold;
  // Its rendezvous server has a port of its own for each job of a host.
  id.job_id = "horovod-" + read.text("HOROVOD_GLOO_RENDEZVOUS_ADDR").value_or("none") + "-" +
              read.text("HOROVOD_GLOO_RENDEZVOUS_PORT").value_or("none");
  id.master = read_master(read, id);
  check_ranges(id, {"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
                    "node", "number of nodes"});
  return id;
}

}  // namespace lockstep
