#pragma once
// The store of a job that another launcher, or a user's own script, started: rank 0 serves it.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/store.h"
#include "lockstep/world/identity.h"

namespace lockstep {

/// Ports to try, in this order, by the server and by every client: MASTER_PORT, or, where
/// torchrun's own store listens there or the launcher names no port, eight derived from
/// (MASTER_PORT, job id, restart count) in LOCKSTEP_PORT_RANGE or, without it, [20000, 30000):
/// below the range from which kernels hand out ports, and outside that of HCCL.
std::vector<int> store_ports(const Identity& identity);

/// Eight ports for `use` that follow from (MASTER_PORT, job id, restart count), as above.
std::vector<int> derived_ports(const Identity& identity, const std::string& use);

/// What the store's handshake proves. It depends on run id, size, port and restart count, so that
/// a client that reaches another job's store on a shared port is refused and tries the next one;
/// it is secret only if identity.secret is. Where that is empty, the store lets in processes of
/// this user and host alone.
std::string store_secret(const Identity& identity);

/// Serves (rank 0) or joins the store. The server lives as long as rank 0's copy, whose end waits
/// up to 5 s for ranks that have not left yet (not while an exception unwinds). Errors:
/// kUnavailable (no port is free), kTimeout naming address and ports, kMismatch (another build or
/// job at MASTER_PORT).
std::shared_ptr<Store> meet_torch_store(const Identity& identity, Deadline deadline);

}  // namespace lockstep
