#pragma once
// Being in a container, as far as the kernel's namespaces go.

namespace lockstep::testing {

/// Containers may be kept from making others.
bool may_enter_namespaces();

/// As a container without root: this process's user is root in there, and nobody else has a number.
/// `other_spaces`: further CLONE_NEW... For a process of one thread. Errors: std::runtime_error.
void enter_user_namespace(int other_spaces = 0);

/// After enter_user_namespace(CLONE_NEWPID): goes on as the first process there, in a fork, while
/// this one waits for it and ends as it ends.
void enter_pid_namespace();

}  // namespace lockstep::testing
