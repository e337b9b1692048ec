#include "lockstep/world/bootstrap/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "lockstep/base/auth.h"
#include "lockstep/base/env.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/torch_store.h"

namespace lockstep::inline internal {
namespace {

/// File names may have 255 bytes.
constexpr size_t kMostOfName = 200;

/// A file name from a job's name. A name that had to be changed also gets a digest, since other
/// jobs may have the same remainder.
std::string file_name(const Identity& id) {
  // MASTER_PORT distinguishes jobs without a name.
  const std::string exact =
      fmt::format("{}.{}.{}.{}", id.job_id, id.size, id.restart_count, id.master.port);
  std::string name = exact.substr(0, kMostOfName);
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '_'; },
      '_');
  if (name != exact) {
    const Digest digest = hmac_sha256("lockstep job name", exact);
    name += '.' + hex_digits(std::span(digest).first(8));
  }
  return "lockstep-" + name;
}

/// Two such jobs of one size could be confused.
bool is_nameless(const Identity& id) {
  const bool no_name =
      id.job_id.ends_with("none") || id.job_id == "ascend" || id.job_id == "mindspore";
  return no_name && id.master.port == 0;
}

std::shared_ptr<RankExchange> open_channel(Channel channel, const Identity& id,
                                           const Environment& environment) {
  switch (channel) {
    case Channel::kPmix:
      return open_pmix_exchange();
    case Channel::kPmi:
      if (!environment.contains("PMI_FD")) return open_pmi_port_exchange(environment);
      return open_pmi_exchange(static_cast<int>(
          parse_int(environment.at("PMI_FD"), 0, 1 << 20, "environment variable PMI_FD")));
    case Channel::kMunge:
      return open_munge_exchange(id.master.host, derived_ports(id, "exchange by munge"),
                                 file_name(id));
    case Channel::kFolder:
      break;
  }
  return open_folder_exchange(environment.at("LOCKSTEP_RENDEZVOUS_DIR"), file_name(id),
                              is_nameless(id));
}

}  // namespace

std::shared_ptr<RankExchange> open_exchange(const Identity& id, const Environment& environment) {
  std::string reasons;
  for (const Channel channel : id.channels) {
    try {
      return open_channel(channel, id, environment);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      reasons += fmt::format("; {}: {}", to_string(channel), error.what());
    }
  }
  throw Error(ErrorCode::kUnavailable,
              "rank 0 cannot tell the others where to meet" + reasons +
                  "; set MASTER_ADDR and LOCKSTEP_SECRET, or LOCKSTEP_RENDEZVOUS_DIR to a folder "
                  "that all hosts share");
}

}  // namespace lockstep::inline internal
