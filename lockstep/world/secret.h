#pragma once

#include <string>

#include "lockstep/base/auth.h"

namespace lockstep {

/// A job secret in a file: one line, 1 to 4096 characters. Errors: kInvalidArgument when it is
/// empty, belongs to another user than this one or root, or has another mode than 600, 400 or, of
/// one's own group, 440; also 640 and 040 where it is root's and we are not, as Kubernetes mounts
/// secrets. kNotFound, kIo.
std::string read_secret_file(const std::string& path);

/// LOCKSTEP_SECRET, else what is in the file LOCKSTEP_SECRET_FILE, else "". Errors: as above.
std::string secret_of_environment();

/// Where the latter has it from, for messages: "the file F (LOCKSTEP_SECRET_FILE)".
std::string secret_source();

/// The same for the agents of several nodes, which need some text: with LOCKSTEP_INSECURE=1, where
/// there is none, one that everybody knows. Errors: as above; kInvalidArgument (neither 0 nor 1;
/// no secret for `wire`).
std::string secret_of_agents(Wire wire);

/// `host`, which nodes without a secret are to meet at, can be looked up, or such a secret is
/// given: with one the name is waited for. `what` says where it is from. Errors: kInvalidArgument.
void check_host_of_agents(const std::string& secret, const std::string& host,
                          const std::string& what);

/// Of a secret between hosts that can be guessed; empty: this one cannot. `members`: "nodes".
std::string weak_secret_warning(const std::string& secret, const std::string& members);

/// For an agent that others reach at `address`: warns of the text that everybody knows, and of one
/// that can be guessed. `what`
/// says where the address is from. Errors: kInvalidArgument (no secret), naming what would do.
void check_secret_of_agents(const std::string& secret, const std::string& address,
                            const std::string& what);

}  // namespace lockstep
