#pragma once
// Descriptors that go from one process to another with the bytes of a unix socket (SCM_RIGHTS).

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

/// Most descriptors of one message.
inline constexpr size_t kMaxPassedDescriptors = 4;

/// send(2) of `bytes` with `fds`, at least one, which stay open here. Without SIGPIPE; repeated
/// after EINTR.
ssize_t send_with_descriptors(int socket, std::string_view bytes, std::span<const int> fds,
                              int flags = 0);

/// recv(2) that also takes the descriptors of the message, close-on-exec, and appends them to
/// `*fds`. Of a message with more than kMaxPassedDescriptors, or more than this process may open,
/// none are taken. Any kind of socket. Not repeated after EINTR.
ssize_t receive_with_descriptors(int socket, std::span<char> bytes, std::vector<UniqueFd>* fds,
                                 int flags = 0);

}  // namespace lockstep::inline internal
