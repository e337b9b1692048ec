#include "lockstep/launch/identity.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr int kMaxRanks = 1 << 24;

/// Variables that mean what they say: no misspelling of another.
constexpr std::array<std::string_view, 8> kTorchNames = {
    "RANK",       "WORLD_SIZE",       "LOCAL_RANK",  "LOCAL_WORLD_SIZE",
    "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};

/// Reads variables with errors that name them.
class Reader {
 public:
  explicit Reader(const Environment& variables) : variables_(variables) {}

  std::optional<std::string> text(const std::string& name) const {
    const auto found = variables_.find(name);
    if (found == variables_.end() || found->second.empty()) return std::nullopt;
    return found->second;
  }

  bool any(std::initializer_list<const char*> names) const {
    return std::any_of(names.begin(), names.end(),
                       [this](const char* name) { return text(name).has_value(); });
  }

  /// `because` completes "X is not set, but ...".
  std::string need(const std::string& name, const std::string& because) const {
    if (const auto value = text(name)) return *value;
    std::vector<std::string> others;
    for (const auto& [other, value] : variables_) {
      const bool known =
          std::find(kTorchNames.begin(), kTorchNames.end(), other) != kTorchNames.end();
      if (!value.empty() && !known) others.push_back(other);
    }
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("environment variable {} is not set, but {}{}", name, because,
                            did_you_mean(name, others)));
  }

  int number(const std::string& name, const std::string& value, int lo, int hi) const {
    return static_cast<int>(parse_int(value, lo, hi, "environment variable " + name));
  }
  int need_number(const std::string& name, const std::string& because, int lo, int hi) const {
    return number(name, need(name, because), lo, hi);
  }
  std::optional<int> maybe_number(const std::string& name, int lo, int hi) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    return number(name, *value, lo, hi);
  }

 private:
  const Environment& variables_;
};

/// The variables in which a source gives the ranks, for messages.
struct Names {
  std::string rank, size, local_rank, local_size, node_rank, num_nodes;
};

[[noreturn]] void contradict(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, "environment: " + text);
}

void check_less(const std::string& a, int value, const std::string& b, int bound) {
  if (value >= bound) contradict(fmt::format("{}={} must be below {}={}", a, value, b, bound));
}

void check_ranges(const Identity& id, const Names& names) {
  check_less(names.rank, id.rank, names.size, id.size);
  check_less(names.local_rank, id.local_rank, names.local_size, id.local_size);
  check_less(names.node_rank, id.node_rank, names.num_nodes, id.num_nodes);
  if (id.local_size + id.num_nodes - 1 > id.size) {
    contradict(fmt::format("{}={} and {}={} leave some node without a rank, as {}={}",
                           names.local_size, id.local_size, names.num_nodes, id.num_nodes,
                           names.size, id.size));
  }
  if (id.num_nodes == 1 && (id.local_size != id.size || id.local_rank != id.rank)) {
    contradict(fmt::format("{} is 1, so {}={} must equal {}={} and {}={} must equal {}={}",
                           names.num_nodes, names.local_size, id.local_size, names.size, id.size,
                           names.local_rank, id.local_rank, names.rank, id.rank));
  }
}

Identity read_agent(const Reader& read) {
  const std::string because = "LOCKSTEP_STORE is; our agent sets both";
  Identity id;
  id.launcher = "lockstep";
  id.master = parse_endpoint(read.need("LOCKSTEP_STORE",
                                       "other LOCKSTEP_ variables of our agent "
                                       "are"),
                             -1);
  if (id.master.port < 1) contradict("LOCKSTEP_STORE must be HOST:PORT");
  id.size = read.need_number("LOCKSTEP_WORLD_SIZE", because, 1, kMaxRanks);
  id.rank = read.need_number("LOCKSTEP_RANK", because, 0, kMaxRanks);
  id.local_size = read.need_number("LOCKSTEP_LOCAL_WORLD_SIZE", because, 1, kMaxRanks);
  id.local_rank = read.need_number("LOCKSTEP_LOCAL_RANK", because, 0, kMaxRanks);
  id.num_nodes = read.need_number("LOCKSTEP_NUM_NODES", because, 1, kMaxRanks);
  id.node_rank = read.need_number("LOCKSTEP_NODE_RANK", because, 0, kMaxRanks);
  id.restart_count =
      read.need_number("LOCKSTEP_RESTART_COUNT", because, 0, std::numeric_limits<int>::max());
  id.job_id = read.need("LOCKSTEP_RUN_ID", because);
  check_ranges(id, {"LOCKSTEP_RANK", "LOCKSTEP_WORLD_SIZE", "LOCKSTEP_LOCAL_RANK",
                    "LOCKSTEP_LOCAL_WORLD_SIZE", "LOCKSTEP_NODE_RANK", "LOCKSTEP_NUM_NODES"});
  return id;
}

/// LOCAL_RANK and LOCAL_WORLD_SIZE, or what their absence means.
void read_local(const Reader& read, Identity* id) {
  const bool one_host = id->size == 1 || is_loopback(id->master.host);
  const auto size = read.maybe_number("LOCAL_WORLD_SIZE", 1, kMaxRanks);
  const auto rank = read.maybe_number("LOCAL_RANK", 0, kMaxRanks);
  id->local_size = size.value_or(one_host ? id->size : 1);
  if (id->local_size > id->size) {
    contradict(
        fmt::format("LOCAL_WORLD_SIZE={} is more than WORLD_SIZE={}", id->local_size, id->size));
  }
  if (rank && *rank > 0 && !size && !one_host) {
    read.need("LOCAL_WORLD_SIZE", fmt::format("LOCAL_RANK={} is", *rank));
  }
  if (!rank && id->local_size > 1 && !one_host) {
    read.need("LOCAL_RANK", fmt::format("LOCAL_WORLD_SIZE={} is", id->local_size));
  }
  id->local_rank = rank.value_or(one_host ? id->rank % id->local_size : 0);
  check_less("LOCAL_RANK", id->local_rank, "LOCAL_WORLD_SIZE", id->local_size);
}

/// GROUP_RANK and GROUP_WORLD_SIZE, or, where every node has equally many ranks in a row, by
/// division.
void read_nodes(const Reader& read, Identity* id) {
  const auto size = read.maybe_number("GROUP_WORLD_SIZE", 1, kMaxRanks);
  const auto rank = read.maybe_number("GROUP_RANK", 0, kMaxRanks);
  const bool blocks = id->size % id->local_size == 0 && id->rank % id->local_size == id->local_rank;
  const auto because = fmt::format(
      "RANK={}, WORLD_SIZE={}, LOCAL_RANK={}, LOCAL_WORLD_SIZE={} do "
      "not tell the node",
      id->rank, id->size, id->local_rank, id->local_size);
  if (!blocks && !size) read.need("GROUP_WORLD_SIZE", because);
  if (!blocks && !rank) read.need("GROUP_RANK", because);
  id->num_nodes = size.value_or(id->size / id->local_size);
  id->node_rank = rank.value_or(id->rank / id->local_size);
}

Identity read_torch(const Reader& read) {
  Identity id;
  id.launcher = "torch";
  const std::string because = "RANK, WORLD_SIZE or LOCAL_RANK is; a rank needs RANK and WORLD_SIZE";
  id.size = read.need_number("WORLD_SIZE", because, 1, kMaxRanks);
  id.rank = read.need_number("RANK", because, 0, kMaxRanks);
  check_less("RANK", id.rank, "WORLD_SIZE", id.size);
  if (id.size > 1) {
    const auto many = fmt::format("WORLD_SIZE={} ranks must meet somewhere", id.size);
    id.master.host = read.need("MASTER_ADDR", many);
    id.master.port = read.need_number("MASTER_PORT", many, 1, 65535);
  }
  read_local(read, &id);
  read_nodes(read, &id);
  id.restart_count =
      read.maybe_number("TORCHELASTIC_RESTART_COUNT", 0, std::numeric_limits<int>::max())
          .value_or(0);
  id.job_id = read.text("TORCHELASTIC_RUN_ID").value_or("none");
  id.master_taken = read.text("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  check_ranges(id, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                    "GROUP_WORLD_SIZE"});
  return id;
}

/// LOCKSTEP_LAUNCHER, or the first source that is there.
std::string choose_source(const Reader& read, bool agent, bool torch) {
  if (const auto wanted = read.text("LOCKSTEP_LAUNCHER")) {
    const std::vector<std::string> known = {"lockstep", "torch", "none"};
    if (std::find(known.begin(), known.end(), *wanted) != known.end()) return *wanted;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("environment variable LOCKSTEP_LAUNCHER: '{}' is not one of "
                            "lockstep, torch, none{}",
                            *wanted, did_you_mean(*wanted, known)));
  }
  return agent ? "lockstep" : torch ? "torch" : "none";
}

std::string describe(const Identity& id) {
  return fmt::format("rank {} of {}, local rank {} of {}", id.rank, id.size, id.local_rank,
                     id.local_size);
}

void check_agreement(const Identity& agent, const Identity& torch) {
  if (describe(agent) == describe(torch)) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("two launchers set this process's environment: LOCKSTEP_RANK and its "
                          "like say {}; RANK and its like say {}. Set LOCKSTEP_LAUNCHER to "
                          "lockstep, torch or none",
                          describe(agent), describe(torch)));
}

}  // namespace

Identity decide_identity(const Environment& environment) {
  const Reader read(environment);
  const bool agent = read.any({"LOCKSTEP_STORE", "LOCKSTEP_RANK", "LOCKSTEP_WORLD_SIZE"});
  const bool torch = read.any({"RANK", "WORLD_SIZE", "LOCAL_RANK"});
  const std::string source = choose_source(read, agent, torch);
  Identity id;
  if (source == "lockstep") id = read_agent(read);
  if (source == "torch") id = read_torch(read);
  if (agent && torch && !read.text("LOCKSTEP_LAUNCHER")) check_agreement(id, read_torch(read));
  id.secret = read.text("LOCKSTEP_SECRET").value_or("");
  id.address = read.text("LOCKSTEP_ADDRESS").value_or("");
  if (id.size > 1 && id.secret.empty() && !is_loopback(id.master.host)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("ranks meet at {}, which is not this host's loopback: set "
                            "LOCKSTEP_SECRET to the same text (openssl rand -hex 32) on all ranks",
                            id.master.host));
  }
  return id;
}

bool is_launched() {
  return decide_identity(this_environment()).launcher != "none";
}

int threads_per_rank(const Environment& environment, int cores, int local_size) {
  const auto given = Reader(environment).text("OMP_NUM_THREADS");
  if (!given) return std::max(1, cores / std::max(1, local_size));
  // A list gives one number per nesting level; ours is the outermost.
  return static_cast<int>(parse_int(given->substr(0, given->find(',')), 1, 1 << 16,
                                    "environment variable OMP_NUM_THREADS"));
}

int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return 1;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

}  // namespace lockstep
