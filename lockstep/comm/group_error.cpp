#include "lockstep/comm/group_error.h"

#include <fmt/format.h>

#include "lockstep/base/env.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"

namespace lockstep::inline internal {

bool is_harmless(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kUnavailable;
}

namespace {

/// This rank's own part of the group ends only after the alarm.
constexpr auto kAlarmLimit = 500ms;

const std::string& name_of_whole(const GroupSpec& spec) {
  return spec.whole.empty() ? spec.name : spec.whole;
}

/// The group has its error by now, so a failure here is none of the call.
void raise_alarm(const GroupSpec& spec, Deadline deadline) {
  try {
    spec.store->set(alarm_key(spec), "", deadline);
  } catch (const std::exception& error) {
    log_debug(fmt::format("{}: ranks that wait in group '{}' may hear of its end late: {}",
                          spec.rank_name(spec.rank), spec.name, error.what()));
  }
}

}  // namespace

std::string group_error_key(const GroupSpec& spec) {
  return group_error_key(name_of_whole(spec));
}

std::string group_error_key(const std::string& group) {
  return group + "/error";
}

std::string alarm_key(const GroupSpec& spec) {
  return name_of_whole(spec) + "/detection";
}

std::string encode_group_error(const Error& error) {
  return fmt::format("{} {}", static_cast<int>(error.code()), error.what());
}

Error agree_on_group_error(const GroupSpec& spec, const Error& error, Deadline deadline) {
  const auto swap = spec.store->compare_set(group_error_key(spec), std::nullopt,
                                            encode_group_error(error), deadline);
  if (swap.swapped) raise_alarm(spec, deadline.at_most(kAlarmLimit));
  return !swap.swapped && swap.value ? decode_group_error(*swap.value) : error;
}

Error with_store_lost(const Error& error, const std::exception& store_error) {
  const auto* const known = dynamic_cast<const Error*>(&store_error);
  if (known == nullptr || known->code() != ErrorCode::kPeerLost) return error;
  return Error(error.code(), std::string(error.what()) +
                                 "; the job's store is gone: the launcher's agent, or rank 0 "
                                 "where that serves it, may have been the first to end");
}

Error try_to_agree(const GroupSpec& spec, const Error& error, Deadline deadline) noexcept {
  try {
    return agree_on_group_error(spec, error, deadline);
  } catch (const std::exception& store_error) {
    log_debug(fmt::format("{}: the store lacks the error of group '{}': {}",
                          spec.rank_name(spec.rank), spec.name, store_error.what()));
    return with_store_lost(error, store_error);
  }
}

Error decode_group_error(const std::string& text) {
  const size_t space = text.find(' ');
  const auto code = static_cast<ErrorCode>(
      parse_int(text.substr(0, space), 0, static_cast<int>(ErrorCode::kInternal), "group error"));
  return Error(code, text.substr(space + 1));
}

}  // namespace lockstep::inline internal
