// Checks that a table distinguishes every rank; and the place of each.

#include <fmt/format.h>

#include <map>

#include "lockstep/base/text.h"
#include "lockstep/world/rank_table/rank_table.h"

namespace lockstep::inline internal {
namespace {

std::string server_path(size_t server) {
  return fmt::format("$.server_list[{}]", server);
}

std::string device_path(size_t server, size_t device) {
  return fmt::format("$.server_list[{}].device[{}]", server, device);
}

class RankCheck {
 public:
  explicit RankCheck(const RankTable& table) : table_(table), num_ranks_(num_ranks(table)) {}

  std::vector<RankTableFault> run() {
    check_top();
    for (size_t i = 0; i < table_.servers.size(); ++i) check_server(i);
    check_gaps();
    return std::move(faults_);
  }

 private:
  void fault(std::string path, std::string text) {
    faults_.push_back({false, std::move(path), std::move(text)});
  }

  void check_top() {
    if (!table_.status.empty() && table_.status != "completed") {
      fault("$.status", fmt::format("\"{}\", must be \"completed\"{}", table_.status,
                                    table_.status == "initializing"
                                        ? ": the scheduler has not filled the table yet"
                                        : ""));
    }
    if (table_.server_count >= 0 &&
        table_.server_count != static_cast<int>(table_.servers.size())) {
      fault("$.server_count", fmt::format("\"{}\", but server_list has {}", table_.server_count,
                                          table_.servers.size()));
    }
  }

  void check_server(size_t index) {
    const RankTableServer& server = table_.servers[index];
    const auto [other, is_new] = server_of_.try_emplace(server.server_id, index);
    if (!is_new && !server.server_id.empty()) {
      fault(server_path(index) + ".server_id",
            fmt::format("\"{}\" is also that of {}", server.server_id, server_path(other->second)));
    }
    std::map<int, size_t> ids;
    for (size_t i = 0; i < server.devices.size(); ++i) {
      const RankTableDevice& device = server.devices[i];
      const auto [twin, first] = ids.try_emplace(device.device_id, i);
      if (!first && device.device_id >= 0) {
        fault(device_path(index, i) + ".device_id",
              fmt::format("\"{}\" is also that of {}", device.device_id,
                          device_path(index, twin->second)));
      }
      check_rank(device.rank, device_path(index, i));
    }
  }

  void check_rank(int rank, const std::string& path) {
    if (rank < 0) unreadable_ = true;
    if (rank < 0) return;
    const auto [other, is_new] = path_of_rank_.try_emplace(rank, path);
    if (!is_new) {
      fault(path + ".rank_id", fmt::format("\"{}\" is also that of {}", rank, other->second));
    } else if (rank >= num_ranks_) {
      fault(path + ".rank_id", fmt::format("\"{}\" is above {}, the last of {} devices' ranks",
                                           rank, num_ranks_ - 1, num_ranks_));
    }
  }

  /// Reports nothing if a rank could not be read: it may be the missing one.
  void check_gaps() {
    if (unreadable_) return;
    std::vector<int> missing;
    for (int rank = 0; rank < num_ranks_; ++rank) {
      if (!path_of_rank_.contains(rank)) missing.push_back(rank);
    }
    if (missing.empty()) return;
    fault("$.server_list", fmt::format("no device has rank {}; {} devices have ranks 0 to {}",
                                       rank_list(missing), num_ranks_, num_ranks_ - 1));
  }

  const RankTable& table_;
  const int num_ranks_;
  std::map<std::string, size_t> server_of_;
  std::map<int, std::string> path_of_rank_;
  bool unreadable_ = false;
  std::vector<RankTableFault> faults_;
};

}  // namespace

std::vector<RankTableFault> check_ranks(const RankTable& table) {
  return RankCheck(table).run();
}

int num_ranks(const RankTable& table) {
  size_t count = 0;
  for (const RankTableServer& server : table.servers) count += server.devices.size();
  return static_cast<int>(count);
}

bool is_for_ascend(const RankTable& table) {
  for (const RankTableServer& server : table.servers) {
    for (const RankTableDevice& device : server.devices) {
      if (!device.device_ip.empty()) return true;
    }
  }
  return false;
}

std::optional<RankTablePlace> find_rank(const RankTable& table, int rank) {
  for (size_t i = 0; i < table.servers.size(); ++i) {
    const auto& devices = table.servers[i].devices;
    for (size_t j = 0; j < devices.size(); ++j) {
      if (devices[j].rank == rank) return RankTablePlace{static_cast<int>(i), static_cast<int>(j)};
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::inline internal
