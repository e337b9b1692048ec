#pragma once
// The ranks that spawn() runs, and their failures.

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/error.h"

namespace lockstep::inline internal {

struct RankFailure {
  int rank = 0;
  std::optional<ErrorCode> code;  ///< None: an exception other than Error.
  std::string text;
  bool died = false;  ///< It sent no message: the text is how its process ended.

  bool operator==(const RankFailure&) const = default;
};

/// The failure for an exception of a body.
RankFailure failure_of(int rank, const std::exception_ptr& thrown);

/// Whether it is only the loss of another rank.
bool follows_another(const RankFailure& failure);

/// The first that does not follow another, else the first. `failures`: at least one, in their
/// order.
const RankFailure& cause_among(const std::vector<RankFailure>& failures);

/// Throws "rank R of N: TEXT": an Error, or a std::runtime_error if there is no code.
[[noreturn]] void throw_failure(const RankFailure& failure, int num_ranks);

/// To bytes and back, for a rank that did not die. A long text is cut: a message has at most
/// PIPE_BUF bytes, so that one write to a pipe is atomic. Errors of the second: kCorrupt.
std::string to_message(const RankFailure& failure);
RankFailure failure_from_message(std::string_view message);

using RankBody = std::function<void(int rank)>;

/// Errors: kInvalidArgument (this process has threads), kIo.
std::vector<RankFailure> run_as_processes(int num_ranks, const RankBody& body,
                                          std::chrono::milliseconds grace);

std::vector<RankFailure> run_as_threads(int num_ranks, const RankBody& body);

}  // namespace lockstep::inline internal
