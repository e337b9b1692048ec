#include "lockstep/launch/rendezvous/offer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/auth.h"
#include "lockstep/launch/job/json_members.h"
#include "lockstep/launch/rendezvous/limits.h"

namespace lockstep {

std::string secret_mark(std::string_view secret, Wire wire) {
  const auto* text = wire == Wire::kTls ? "an agent's offer, by TLS" : "an agent's offer";
  return fmt::format("{:02x}", fmt::join(hmac_sha256(secret, text), ""));
}

std::string to_json(const Offer& offer) {
  nlohmann::json json = {{"host", cut(offer.host, kMaxName)},
                         {"address", cut(offer.address, kMaxName)},
                         {"store_port", offer.store_port},
                         {"torch_port", offer.torch_port},
                         {"place_port", offer.place_port},
                         {"local_size", offer.local_size},
                         {"role", cut(offer.role, kMaxName)},
                         {"mark", offer.mark},
                         {"program", cut(offer.program, kMaxName)},
                         {"min_nodes", offer.min_nodes},
                         {"max_nodes", offer.max_nodes},
                         {"generation", offer.generation},
                         {"last_rank", offer.last_rank},
                         {"num_nodes", offer.num_nodes},
                         {"restart_count", offer.restart_count},
                         {"token", cut(offer.token, kMaxName)},
                         {"stepped", offer.stepped ? 1 : 0},
                         {"early_failures", offer.early_failures},
                         {"failures_in_a_row", offer.failures_in_a_row},
                         {"work", static_cast<int>(offer.work)},
                         {"leaving", offer.leaving}};
  if (offer.node_rank) json["node_rank"] = *offer.node_rank;
  return to_text(json);
}

Offer offer_from_json(std::string_view text) {
  const auto json = parse_object(text, kMaxOfferBytes, "an agent's offer");
  Offer offer;
  offer.host = text_member(json, "host", kMaxName);
  offer.address = text_member(json, "address", kMaxName);
  offer.store_port = small_member(json, "store_port", 0, kMaxPort);
  offer.torch_port = small_member(json, "torch_port", 0, kMaxPort);
  offer.place_port = small_member(json, "place_port", 0, kMaxPort);
  offer.local_size = small_member(json, "local_size", 1, kMaxLocalRanks);
  offer.role = text_member(json, "role", kMaxName);
  offer.program = text_member(json, "program", kMaxName);
  offer.mark = text_member(json, "mark", 2 * sizeof(Digest));
  offer.max_nodes = small_member(json, "max_nodes", 1, kMaxNodes);
  offer.min_nodes = small_member(json, "min_nodes", 1, offer.max_nodes);
  offer.generation = int_member(json, "generation", 0, kMaxGeneration);
  offer.last_rank = small_member(json, "last_rank", -1, kMaxNodes - 1);
  offer.num_nodes = small_member(json, "num_nodes", 0, kMaxNodes);
  offer.restart_count = small_member(json, "restart_count", 0, kMaxRestarts);
  offer.token = text_member(json, "token", kMaxName);
  offer.stepped = small_member(json, "stepped", 0, 1) == 1;
  offer.early_failures = small_member(json, "early_failures", 0, kMaxRestarts);
  offer.failures_in_a_row = small_member(json, "failures_in_a_row", 0, kMaxRestarts);
  offer.work = static_cast<NodeWork>(small_member(json, "work", 0, 2));
  offer.leaving = small_member(json, "leaving", 0, 64);
  if (json.contains("node_rank")) {
    offer.node_rank = small_member(json, "node_rank", 0, kMaxNodes - 1);
  }
  return offer;
}

}  // namespace lockstep
