#include "lockstep/launch/rendezvous/offer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/auth.h"
#include "lockstep/launch/job/json_members.h"
#include "lockstep/launch/rendezvous/limits.h"

namespace lockstep {
namespace {

constexpr auto kOfferMembers = [](auto& m, auto& offer) {
  m.text("host", offer.host, kMaxName);
  m.text("address", offer.address, kMaxName);
  m.number("store_port", offer.store_port, 0, kMaxPort);
  m.number("torch_port", offer.torch_port, 0, kMaxPort);
  m.number("place_port", offer.place_port, 0, kMaxPort);
  m.number("local_size", offer.local_size, 1, kMaxLocalRanks);
  m.text("role", offer.role, kMaxName);
  m.text("program", offer.program, kMaxName);
  m.text("mark", offer.mark, 2 * sizeof(Digest));
  m.number("max_nodes", offer.max_nodes, 1, kMaxNodes);
  m.number("min_nodes", offer.min_nodes, 1, offer.max_nodes);
  m.number("generation", offer.generation, 0, kMaxGeneration);
  m.number("last_rank", offer.last_rank, -1, kMaxNodes - 1);
  m.number("num_nodes", offer.num_nodes, 0, kMaxNodes);
  m.number("restart_count", offer.restart_count, 0, kMaxRestarts);
  m.text("token", offer.token, kMaxName);
  m.number("stepped", offer.stepped, 0, 1);
  m.number("early_failures", offer.early_failures, 0, kMaxRestarts);
  m.number("failures_in_a_row", offer.failures_in_a_row, 0, kMaxRestarts);
  m.number("work", offer.work, 0, 2);
  m.number("leaving", offer.leaving, 0, 64);
  m.maybe("node_rank", offer.node_rank, 0, kMaxNodes - 1);
};

}  // namespace

std::string secret_mark(std::string_view secret, Wire wire) {
  const auto* text = wire == Wire::kTls ? "an agent's offer, by TLS" : "an agent's offer";
  return fmt::format("{:02x}", fmt::join(hmac_sha256(secret, text), ""));
}

std::string to_json(const Offer& offer) {
  return json_of(offer, kOfferMembers);
}

Offer offer_from_json(std::string_view text) {
  return read_message<Offer>(text, kMaxOfferBytes, "an agent's offer", kOfferMembers);
}

}  // namespace lockstep
