#pragma once
// A store in a folder that all processes share: of one host, or over NFS of several.

#include <filesystem>
#include <memory>
#include <string>

#include "lockstep/store.h"

namespace lockstep {

/// Joins the store in `folder`, which is made where there is none. The store lives as long as one
/// client does: the first that comes when none is alive begins an empty one, whatever a crashed job
/// has left, and the last that leaves clears the folder. `secret` tells jobs apart, it does not
/// encrypt: who may use the store is who may write to the folder.
///
/// Every change is appended to one journal, under a lock; each client reads it and has all keys in
/// memory. So this is for the agents of a job (hundreds of clients, changes by the thousand), not
/// for heavy traffic. Other processes' changes are seen at once on one host, and within 50 ms and
/// what NFS caches (noac, or actimeo=1 as mount option) on others. Limits and what differs:
///  * 1 GiB of changes in a store's life; then kUnavailable.
///  * A held key ends at once with its holder's process where the folder's locks tell (one host;
///  NFS
///    too, but a host that lost its power keeps its locks until the server forgets it). Silence is
///    noticed by those who call meanwhile, and counted from when they began to look. Only hold() is
///    a sign of life. A forked child keeps its parent's keys until it has executed or ended.
///  * A process that is stopped in mid-change (SIGSTOP) keeps the others waiting: kTimeout.
/// Errors: kInvalidArgument (something else lies in the folder; names it), kMismatch (another job's
/// secret, another version), kCorrupt (the journal is damaged), kTimeout, kIo.
std::shared_ptr<Store> join_file_store(const std::filesystem::path& folder,
                                       const std::string& secret, Deadline deadline);

}  // namespace lockstep
