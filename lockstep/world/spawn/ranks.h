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

namespace lockstep {

struct RankFailure {
  int rank = 0;
  std::optional<ErrorCode> code;  ///< None: an exception that is no Error.
  std::string text;
  bool died = false;  ///< It said nothing: the text is how its process ended.

  bool operator==(const RankFailure&) const = default;
};

/// Of what a body threw.
RankFailure failure_of(int rank, const std::exception_ptr& thrown);

/// Whether it is only that another rank was lost.
bool follows_another(const RankFailure& failure);

/// The first that does not follow another, else the first; `failures`, in their order, are some.
const RankFailure& cause_among(const std::vector<RankFailure>& failures);

/// Throws "rank R of N: TEXT": an Error, or a std::runtime_error where there is no code.
[[noreturn]] void throw_failure(const RankFailure& failure, int num_ranks);

/// As bytes and back, for one that did not die. A long text is cut: a message is at most PIPE_BUF
/// bytes, so that one write to a pipe is whole. Errors of the second: kCorrupt.
std::string to_message(const RankFailure& failure);
RankFailure failure_from_message(std::string_view message);

using RankBody = std::function<void(int rank)>;

/// Errors: kInvalidArgument (this process has threads), kIo.
std::vector<RankFailure> run_as_processes(int num_ranks, const RankBody& body,
                                          std::chrono::milliseconds grace);

std::vector<RankFailure> run_as_threads(int num_ranks, const RankBody& body);

}  // namespace lockstep
