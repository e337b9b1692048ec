#pragma once
// A store in a folder that all processes share: of one host, or of several over NFS.

#include <filesystem>
#include <memory>
#include <string>

#include "lockstep/store.h"

namespace lockstep::inline internal {

/// Joins the store in `folder`, which is made if missing. The store lives as long as any client.
/// The first client, if none is alive, begins an empty store, whatever a crashed job has left; the
/// last one clears the folder. `secret` distinguishes jobs and does not encrypt: every user with
/// write access to the folder may use the store.
///
/// Every change is appended to one journal, under a lock; each client reads it and keeps all keys
/// in memory. So this is for the agents of a job (hundreds of clients, thousands of changes), not
/// for heavy traffic. Other processes' changes are seen at once on one host. On other hosts they
/// are seen within 50 ms and NFS's caching time (mount with noac, or actimeo=1).
///
/// Limits and differences:
///  * 1 GiB of changes in a store's life; then kUnavailable.
///  * A leased key ends with its holder's process if the file system reports locks: on one host,
///    and on NFS. A host that lost power keeps its locks until the server forgets it.
///  * Clients notice others' silence only during calls, and count it from the first of them. Only
///    set_with_lease() is a heartbeat.
///  * A process that is stopped within a change (SIGSTOP) blocks the others: kTimeout.
/// Errors: kInvalidArgument (something else is in the folder; names it), kMismatch (another job's
/// secret, another version), kCorrupt (the journal is damaged), kTimeout, kIo.
std::shared_ptr<KeyValueStore> join_file_store(const std::filesystem::path& folder,
                                               const std::string& secret, Deadline deadline);

}  // namespace lockstep::inline internal
