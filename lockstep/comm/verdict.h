#pragma once
// One error for all ranks of a group, by way of its store: the first that is written down.

#include <string>

#include "lockstep/comm/group_impl.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"

namespace lockstep {

/// Errors after which a group goes on on every rank: nothing was sent, or all ranks agreed.
bool is_harmless(ErrorCode code);

/// Ends what is told of a rank of which it is certain that it died.
inline constexpr const char* kDied = "died; its own log or the launcher's says why";

std::string verdict_key(const GroupSpec& spec);
std::string verdict_key(const std::string& group);

/// Writes `error` down unless another rank was first; returns what is written then. Errors: the
/// store's.
Error agree_on_verdict(const GroupSpec& spec, const Error& error, Deadline deadline);

/// The same, of which nobody needs to know whether it could be done: if not, only this rank has it,
/// and where the store is gone, the error says so.
Error try_to_agree(const GroupSpec& spec, const Error& error, Deadline deadline) noexcept;

/// `error`, and where `store_error` is the loss of the store, that: a peer that this rank lost may
/// itself only have ended because of it.
Error with_store_lost(const Error& error, const std::exception& store_error);

std::string encode_verdict(const Error& error);
/// What `text`, read at verdict_key(), says.
Error decode_verdict(const std::string& text);

}  // namespace lockstep
