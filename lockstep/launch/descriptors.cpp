#include "lockstep/launch/descriptors.h"

#include <fmt/format.h>

#include <optional>

#include "lockstep/error.h"

namespace lockstep {
namespace {

/// For everything else that a process has open, and what programs that are being started have.
constexpr size_t kOtherDescriptors = 160;

std::optional<rlimit>& before_raising() {
  static std::optional<rlimit> limit;
  return limit;
}

}  // namespace

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  const rlimit before = limit;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) before_raising() = before;
}

const rlimit* users_descriptor_limit() {
  return before_raising() ? &*before_raising() : nullptr;
}

UsersDescriptorLimit::UsersDescriptorLimit() {
  if (users_descriptor_limit() == nullptr) return;
  ::getrlimit(RLIMIT_NOFILE, &raised_);
  ::setrlimit(RLIMIT_NOFILE, users_descriptor_limit());
}

UsersDescriptorLimit::~UsersDescriptorLimit() {
  if (users_descriptor_limit() != nullptr) ::setrlimit(RLIMIT_NOFILE, &raised_);
}

void check_descriptors(size_t needed, const std::string& what) {
  rlimit limit{};
  needed += kOtherDescriptors;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || needed <= limit.rlim_cur) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} need {} open files, and this process may have {}: raise the hard "
                          "limit (ulimit -Hn)",
                          what, needed, limit.rlim_cur));
}

}  // namespace lockstep
