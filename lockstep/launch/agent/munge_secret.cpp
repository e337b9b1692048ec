#include "lockstep/launch/agent/munge_secret.h"

#include "lockstep/base/auth.h"
#include "lockstep/world/bootstrap/meet.h"
#include "lockstep/world/torch_store.h"

namespace lockstep::inline internal {

MungeSecret secret_by_munge(const Identity& step, const RunOptions& options, Deadline deadline) {
  // Uses other ports than the ranks, in case the same step starts those too.
  const auto exchange =
      open_munge_exchange(step.master.host, derived_ports(step, "agents' exchange by munge"),
                          "agents of " + step.job_id);
  if (options.node_rank != 0) {
    return {parse_bootstrap_record(exchange->receive(deadline)).secret, nullptr};
  }
  BootstrapRecord record;
  record.secret = make_job_secret();
  record.wire = options.wire;
  record.endpoints = {{options.master_addr, options.master_port}};
  exchange->publish(to_line(record), deadline);
  return {record.secret, exchange};
}

}  // namespace lockstep::inline internal
