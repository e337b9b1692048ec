#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/launch/rank_table/hccl_tools.h"
#include "lockstep/world/rank_table/document.h"

namespace lockstep {
namespace {

void refuse_errors(const std::string& name, const std::vector<RankTableFault>& faults) {
  for (const RankTableFault& fault : faults) {
    if (!fault.warning)
      throw Error(ErrorCode::kCorrupt, fmt::format("{}: {}", name, to_string(fault)));
  }
}

}  // namespace

MergedTable merge_rank_tables(const std::vector<RankTableText>& files) {
  auto servers = nlohmann::ordered_json::array();
  int rank = 0;
  for (const RankTableText& file : files) {
    refuse_errors(file.name, read_rank_table(file.json).faults);
    std::string ignored;
    auto document = rank_table::parse_document(file.json, &ignored);
    for (auto& server : document["server_list"]) {
      for (auto& device : server["device"]) device["rank_id"] = std::to_string(rank++);
      servers.push_back(std::move(server));
    }
  }
  nlohmann::ordered_json merged = {{"version", "1.0"},
                                   {"server_count", std::to_string(servers.size())},
                                   {"server_list", std::move(servers)},
                                   {"status", "completed"}};
  MergedTable result;
  result.json = rank_table::dump_document(merged);
  result.table = read_rank_table(result.json).table;
  refuse_errors("the merged table", check_ranks(result.table));
  return result;
}

}  // namespace lockstep
