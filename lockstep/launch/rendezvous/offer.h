#pragma once
// What an agent brings to a job and how far it is, as its held key says: the one thing that an
// agent writes about itself, so that a new leader learns all there is to know from the offers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/auth.h"
#include "lockstep/base/socket.h"

namespace lockstep {

/// What the workers of an agent's last generation do.
enum class NodeWork : uint8_t {
  kIdle,  ///< There are none (any more).
  kBusy,  ///< They run, or are being ended.
  kDone,  ///< All have ended well.
};

struct Offer {
  std::string host;              ///< For messages.
  std::string address;           ///< At which other nodes reach this one.
  int store_port = 0;            ///< Where it serves the workers' store, should it become node 0.
  int torch_port = 0;            ///< Kept free for torch's own store, likewise.
  int place_port = 0;            ///< Where it serves the meeting place, should it take over.
  int local_size = 1;            ///< Ranks it runs.
  std::string role;              ///< ROLE_NAME of its ranks.
  std::string program;           ///< Its ranks' (program_name()); equal on all nodes of a role.
  std::string mark;              ///< secret_mark(); equal on all nodes.
  std::optional<int> node_rank;  ///< Asked for by the user.
  int min_nodes = 1;             ///< What its command line says; equal on all nodes.
  int max_nodes = 1;

  int64_t generation = 0;  ///< The last it has taken part in; 0: none.
  int last_rank = -1;      ///< Its node rank in that.
  int num_nodes = 0;       ///< Of that.
  int restart_count = 0;   ///< Of that, as all to failures_in_a_row: see NodePlan.
  std::string token;
  bool stepped = false;  ///< Also when its own workers have made steps since.
  int early_failures = 0;
  int failures_in_a_row = 0;
  NodeWork work = NodeWork::kIdle;
  int leaving = 0;  ///< The signal by which the user ends this node; 0: none.

  bool operator==(const Offer&) const = default;
};

/// By which those who share a secret and a wire know each other where a place lets anybody in, as
/// etcd does. It does not tell the secret.
std::string secret_mark(std::string_view secret, Wire wire = Wire::kPlain);

/// Longest text of an offer; a longer one is refused unread.
inline constexpr size_t kMaxOfferBytes = 4096;

/// One JSON object, of at most kMaxOfferBytes.
std::string to_json(const Offer& offer);
/// Errors: kCorrupt (not an offer, a member is missing or out of range).
Offer offer_from_json(std::string_view text);

}  // namespace lockstep
