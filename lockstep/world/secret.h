#pragma once

#include <string>

#include "lockstep/base/auth.h"

namespace lockstep::inline internal {

/// A job secret in a file: one line, 1 to 4096 characters. Errors: kInvalidArgument if it is empty,
/// belongs to another user than this one or root, or has a wrong mode. Allowed are 600, 400 or,
/// with one's own group, 440. For files of root, if we are not root, also 640 and 040, as
/// Kubernetes mounts secrets. kNotFound, kIo.
std::string read_secret_file(const std::string& path);

/// LOCKSTEP_SECRET, else the content of the file LOCKSTEP_SECRET_FILE, else "". Errors: as above.
std::string secret_of_environment();

/// Its source, for messages: "the file F (LOCKSTEP_SECRET_FILE)".
std::string secret_source();

/// The same for the agents of several hosts, which need some text: without a secret and with
/// LOCKSTEP_INSECURE=1, a publicly known one. Errors: as above; kInvalidArgument (neither 0 nor 1;
/// no secret for `wire`).
std::string secret_of_agents(Wire wire);

/// Checks that `host`, where agents meet, can be resolved, unless they have a secret: with one they
/// wait for the name. `what`: the source of `host`. Errors: kInvalidArgument.
void check_host_of_agents(const std::string& secret, const std::string& host,
                          const std::string& what);

/// A warning if a secret between hosts can be guessed; else empty. `members`: "hosts".
std::string weak_secret_warning(const std::string& secret, const std::string& members);

/// The warning of LOCKSTEP_INSECURE=1 where `members` meet: any program that reaches `place` can
/// take part.
std::string without_secret_warning(const std::string& members, const std::string& place);

/// For an agent that others reach at `address`: warns if the secret is publicly known or can be
/// guessed. `what`: the source of the address. Errors: kInvalidArgument (no secret), with advice.
void check_secret_of_agents(const std::string& secret, const std::string& address,
                            const std::string& what);

}  // namespace lockstep::inline internal
