#include "lockstep/world/spawn/ranks.h"

#include <fmt/format.h>
#include <limits.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace lockstep::inline internal {
namespace {

struct MessageHead {
  int32_t rank;
  int32_t code;  ///< -1: none.
};
constexpr size_t kMaxFailureText = PIPE_BUF - sizeof(MessageHead);

}  // namespace

RankFailure failure_of(int rank, const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return {rank, error.code(), error.what()};
  } catch (const std::exception& error) {
    return {rank, std::nullopt, error.what()};
  } catch (...) {
    return {rank, std::nullopt, "an exception that is no std::exception"};
  }
}

bool follows_another(const RankFailure& failure) {
  return failure.code == ErrorCode::kPeerLost && !failure.died;
}

const RankFailure& cause_among(const std::vector<RankFailure>& failures) {
  const auto cause = std::find_if_not(failures.begin(), failures.end(), follows_another);
  return cause == failures.end() ? failures.front() : *cause;
}

void throw_failure(const RankFailure& failure, int num_ranks) {
  const auto text = fmt::format("rank {} of {}: {}", failure.rank, num_ranks, failure.text);
  if (failure.code) throw Error(*failure.code, text);
  throw std::runtime_error(text);
}

std::string to_message(const RankFailure& failure) {
  const MessageHead head{failure.rank, failure.code ? static_cast<int32_t>(*failure.code) : -1};
  std::string message(sizeof head, '\0');
  std::memcpy(message.data(), &head, sizeof head);
  return message + failure.text.substr(0, kMaxFailureText);
}

RankFailure failure_from_message(std::string_view message) {
  MessageHead head{};
  if (message.size() < sizeof head) {
    throw Error(ErrorCode::kCorrupt, fmt::format("a rank's message has {} bytes, fewer than {}",
                                                 message.size(), sizeof head));
  }
  std::memcpy(&head, message.data(), sizeof head);
  RankFailure failure{head.rank, std::nullopt, std::string(message.substr(sizeof head))};
  if (head.code >= 0) failure.code = static_cast<ErrorCode>(head.code);
  return failure;
}

}  // namespace lockstep::inline internal
