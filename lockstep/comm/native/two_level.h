#pragma once
// The native back end over several hosts: shared memory within a host, TCP between hosts.

#include <memory>

#include "lockstep/comm/group_impl.h"

namespace lockstep {

/// Collective over the members, at least two hosts. Hosts with one rank only just have no shared
/// part, so this is the flat TCP transport as well. Sums follow the tree of reduce_tree.h for every
/// layout. Schedules and bytes: tcp/schedule.h; connections: tcp/peers.h.
///
/// Making it opens no connection; it returns when all members have come, as the store knows. A rank
/// has one with its fellows, which carry the same slice on the other hosts, from the first
/// collective on in which it carries something: that collective waits for them, by its own
/// deadline, and takes two round trips a fellow more. So it does not end before all fellows are in
/// it, also where later ones would, as a broadcast at its root. Until a rank has a connection it
/// has no descriptor for the group; then one for each peer that it talks to, and one to wait with.
///
/// Failure: the first rank that meets an error writes it into the store as the group's verdict,
/// then ends its connections and its host's shared group. Who is woken by that reads the verdict,
/// so every rank throws the same text, naming the culprit and not the neighbour that gave up. (When
/// the store is gone as well, each rank reports what it saw.) A collective that times out names the
/// ranks that did not wait in it: who waits says so in the store when its time is over, so that a
/// rank which only waited for the late one is not blamed. Where all waited, it names the ranks
/// between which nothing passes.
///
/// Errors: kTimeout, kMismatch, kInvalidArgument (no secret between hosts); see also ShmGroup.
std::unique_ptr<GroupImpl> make_two_level_group(const GroupSpec& spec, Deadline deadline);

}  // namespace lockstep
