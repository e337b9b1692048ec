#include "lockstep/launch/meeting_plan.h"

#include <fmt/format.h>

#include "lockstep/base/auth.h"
#include "lockstep/base/error.h"

namespace lockstep {
namespace {

/// Knows anybody who knows the job's name; tells jobs apart, keeps nobody out.
std::string secret_for_all(const Identity& id) {
  std::string hex;
  for (const uint8_t byte : hmac_sha256("lockstep insecure", id.job_id))
    hex += fmt::format("{:02x}", byte);
  return hex;
}

bool is_yes(const Reader& read, const char* name) {
  const auto text = read.text(name).value_or("0");
  if (text == "1" || text == "0") return text == "1";
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("environment variable {}: '{}' is not 0 or 1", name, text));
}

[[noreturn]] void need_place(const Identity& id) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} says who this rank is ({}) but not where the ranks meet: set "
                          "MASTER_ADDR (and MASTER_PORT) to rank 0's host on all ranks",
                          id.launcher, describe(id)));
}

[[noreturn]] void need_secret(const Identity& id) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("ranks meet at {}, which is not this host's loopback: set "
                          "LOCKSTEP_SECRET to the same text (openssl rand -hex 32) on all ranks, "
                          "or LOCKSTEP_SECRET_FILE, or LOCKSTEP_INSECURE=1 on a network where "
                          "nobody else is",
                          id.master.host.empty() ? "rank 0's host" : id.master.host));
}

}  // namespace

void plan_meeting(const Reader& read, Identity* id, std::vector<std::string>* warnings) {
  id->secret = read.text("LOCKSTEP_SECRET").value_or("");
  id->address = read.text("LOCKSTEP_ADDRESS").value_or("");
  if (id->size == 1 && id->launcher != "lockstep") return;
  id->meeting = id->launcher == "lockstep" ? MeetingWay::kAgent : MeetingWay::kRankZero;
  // Whatever address the launcher gives this host: between its own processes none is better.
  if (id->meeting == MeetingWay::kRankZero && id->num_nodes == 1) id->master.host = "127.0.0.1";
  if (id->meeting == MeetingWay::kRankZero && id->master.host.empty()) need_place(*id);
  if (!id->secret.empty() || is_loopback(id->master.host)) return;
  if (!is_yes(read, "LOCKSTEP_INSECURE")) need_secret(*id);
  id->insecure = true;
  id->secret = secret_for_all(*id);
  warnings->push_back(
      "LOCKSTEP_INSECURE=1: ranks of several hosts meet without a secret; whoever reaches their "
      "ports can take part");
}

}  // namespace lockstep
