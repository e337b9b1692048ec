#pragma once
// One error for all ranks of a group, agreed through its store: the first that is written.

#include <string>

#include "lockstep/comm/group_impl.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// Errors after which a group continues on every rank: nothing was sent, or all ranks agreed.
bool is_harmless(ErrorCode code);

/// The end of a message about a rank that certainly died.
inline constexpr const char* kDied = "died; its own log or the launcher's says why";

std::string group_error_key(const GroupSpec& spec);
std::string group_error_key(const std::string& group);

/// Exists from the moment at which a waiting rank must end its wait: see StragglerDetection.
std::string alarm_key(const GroupSpec& spec);

/// Writes `error` unless another rank was first; returns the error in the store. Ranks in a
/// collective over several hosts see it at their next look (StragglerDetection::alarm()), also if
/// no connection of theirs has ended. Errors: the store's.
Error agree_on_group_error(const GroupSpec& spec, const Error& error, Deadline deadline);

/// The same, but it never fails. If the store does not answer, only this rank has the error; if the
/// store is gone, the error reports that.
Error try_to_agree(const GroupSpec& spec, const Error& error, Deadline deadline) noexcept;

/// `error`; if `store_error` is the loss of the store, with that added. A peer that this rank lost
/// may have ended only because of it.
Error with_store_lost(const Error& error, const std::exception& store_error);

std::string encode_group_error(const Error& error);
/// Decodes `text`, read at group_error_key().
Error decode_group_error(const std::string& text);

}  // namespace lockstep::inline internal
