#include "lockstep/world/detect/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/base/env.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// Variables that are valid names, not misspellings of another.
constexpr std::array<std::string_view, 8> kTorchNames = {
    "RANK",       "WORLD_SIZE",       "LOCAL_RANK",  "LOCAL_WORLD_SIZE",
    "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};

bool is_torchs(const std::string& name) {
  return std::find(kTorchNames.begin(), kTorchNames.end(), name) != kTorchNames.end();
}

}  // namespace

std::optional<std::string> Reader::text(const std::string& name) const {
  const auto found = inputs_.variables.find(name);
  if (found == inputs_.variables.end() || found->second.empty()) return std::nullopt;
  if (std::find(used_.begin(), used_.end(), name) == used_.end()) used_.push_back(name);
  return found->second;
}

std::string Reader::need(const std::string& name, const std::string& because) const {
  if (const auto value = text(name)) return *value;
  std::vector<std::string> others;
  for (const auto& [other, value] : inputs_.variables) {
    const bool asked_for = std::find(used_.begin(), used_.end(), other) != used_.end();
    if (!value.empty() && !is_torchs(other) && !asked_for) others.push_back(other);
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("environment variable {} is not set, but {}{}", name, because,
                          did_you_mean(name, others)));
}

std::string Reader::which_are(std::initializer_list<const char*> names) const {
  std::vector<std::string> found;
  for (const char* name : names) {
    const auto variable = inputs_.variables.find(name);
    if (variable != inputs_.variables.end() && !variable->second.empty()) found.emplace_back(name);
  }
  return fmt::format("{} {}", fmt::join(found, " and "), found.size() == 1 ? "is" : "are");
}

int Reader::need_number(const std::string& name, const std::string& because, int lo, int hi) const {
  return static_cast<int>(parse_int(need(name, because), lo, hi, "environment variable " + name));
}

std::optional<int> Reader::maybe_number(const std::string& name, int lo, int hi) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  return static_cast<int>(parse_int(*value, lo, hi, "environment variable " + name));
}

std::optional<std::string> Reader::first_of(std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    if (auto value = text(name)) return value;
  }
  return std::nullopt;
}

std::string Reader::secret() const {
  if (auto given = text("LOCKSTEP_SECRET")) return *given;
  const auto path = text("LOCKSTEP_SECRET_FILE");
  return path ? inputs_.read_secret(*path) : "";
}

void contradict(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, "environment: " + text);
}

void check_less(const std::string& a, int value, const std::string& b, int bound) {
  if (value == kUnknownNumber || bound == kUnknownNumber) return;
  if (value >= bound) contradict(fmt::format("{}={} must be below {}={}", a, value, b, bound));
}

void check_ranges(const Identity& id, const RankNames& names) {
  check_less(names.rank, id.rank, names.size, id.size);
  check_less(names.local_rank, id.local_rank, names.local_size, id.local_size);
  check_less(names.node_rank, id.node_rank, names.num_nodes, id.num_nodes);
  if (id.local_size > id.size) {
    contradict(fmt::format("{}={} is more than {}={}", names.local_size, id.local_size, names.size,
                           id.size));
  }
  if (id.local_size == kUnknownNumber || id.num_nodes == kUnknownNumber) return;
  if (id.local_size + id.num_nodes - 1 > id.size) {
    contradict(fmt::format("{}={} and {}={} leave some host without a rank, as {}={}",
                           names.local_size, id.local_size, names.num_nodes, id.num_nodes,
                           names.size, id.size));
  }
  if (id.num_nodes == 1 && (id.local_size != id.size || id.local_rank != id.rank)) {
    contradict(fmt::format("{} is 1, so {}={} must equal {}={} and {}={} must equal {}={}",
                           names.num_nodes, names.local_size, id.local_size, names.size, id.size,
                           names.local_rank, id.local_rank, names.rank, id.rank));
  }
}

Endpoint read_master(const Reader& read, const Identity& id, const std::string& host) {
  Endpoint master;
  if (id.size == 1) return master;
  master.port = read.maybe_number("MASTER_PORT", 1, 65535).value_or(0);
  if (const auto given = read.text("MASTER_ADDR"))
    master.host = *given;
  else
    master.host = id.num_nodes == 1 ? "127.0.0.1" : host;
  return master;
}

}  // namespace lockstep::inline internal
