#include "lockstep/launch/rank_table/check.h"

#include <gtest/gtest.h>

#include "tests/world/rank_table/sample_table.h"

namespace lockstep {
namespace {

using testing::sample_table;

std::string lines_of_faults(const std::vector<RankTableFault>& faults) {
  std::string lines;
  for (const auto& fault : faults) lines += to_string(fault) + "\n";
  return lines;
}

std::string rules(const RankTable& table) {
  return lines_of_faults(check_hccl_rules(table));
}

std::string ranks(const RankTable& table) {
  return lines_of_faults(check_ranks(table));
}

TEST(RankTableCheck, SoundTablesPass) {
  for (const auto& [servers, devices] : {std::pair(1, 1), {1, 2}, {1, 4}, {1, 8}, {2, 8}, {9, 8}}) {
    const RankTable table = sample_table(servers, devices);
    EXPECT_EQ(ranks(table) + rules(table), "") << servers << " servers of " << devices;
    EXPECT_EQ(lines_of_faults(check_rank_table(format_rank_table(table))), "");
  }
}

TEST(RankTableCheck, CountsAndStatus) {
  RankTable table = sample_table(2, 1);
  table.server_count = 3;
  table.status = "initializing";
  EXPECT_EQ(ranks(table),
            "$.status: \"initializing\", must be \"completed\": the scheduler has not filled the "
            "table yet\n"
            "$.server_count: \"3\", but server_list has 2\n");
}

TEST(RankTableCheck, RanksOnceEachWithoutGaps) {
  RankTable table = sample_table(2, 2);
  table.servers[1].devices[0].rank = 1;
  table.servers[1].devices[1].rank = 7;
  EXPECT_EQ(ranks(table),
            "$.server_list[1].device[0].rank_id: \"1\" is also that of $.server_list[0].device[1]\n"
            "$.server_list[1].device[1].rank_id: \"7\" is above 3, the last of 4 devices' ranks\n"
            "$.server_list: no device has rank 2, 3; 4 devices have ranks 0 to 3\n");
}

TEST(RankTableCheck, ServersAndDevicesOnce) {
  RankTable table = sample_table(2, 2);
  table.servers[1].server_id = "10.0.0.1";
  table.servers[1].devices[1].device_id = 0;
  EXPECT_EQ(ranks(table),
            "$.server_list[1].server_id: \"10.0.0.1\" is also that of $.server_list[0]\n"
            "$.server_list[1].device[1].device_id: \"0\" is also that of "
            "$.server_list[1].device[0]\n");
}

TEST(RankTableCheck, UnreadableNumbersAreNotCountedTwice) {
  std::string text = format_rank_table(sample_table(1, 2));
  text.replace(text.find("\"rank_id\": \"1\""), 14, "\"rank_id\": true");
  EXPECT_EQ(lines_of_faults(check_rank_table(text)),
            "$.server_list[0].device[1].rank_id: a boolean, must be a string\n");
}

TEST(RankTableCheck, RanksIncreaseWithServerIdsAsTexts) {
  RankTable table = sample_table(2, 8);
  table.servers[0].server_id = "10.0.0.9";
  table.servers[1].server_id = "10.0.0.10";
  EXPECT_EQ(
      rules(table),
      "$.server_list[0].server_id: \"10.0.0.9\" comes after \"10.0.0.10\" as a text, but rank "
      "0 comes before its rank 15; ranks must increase with server_id\n");
  for (RankTableServer& server : table.servers) {
    for (RankTableDevice& device : server.devices) device.device_ip = "";
  }
  EXPECT_EQ(rules(table), "") << "HCCL's order does not concern CPU hosts";
}

TEST(RankTableCheck, AddressesOnceAndOnAllDevices) {
  RankTable table = sample_table(1, 8);
  table.servers[0].devices[4].device_ip = table.servers[0].devices[0].device_ip;
  table.servers[0].devices[5].device_ip = "";
  EXPECT_EQ(rules(table),
            "$.server_list[0].device[5].device_ip: missing, though other devices have one\n"
            "$.server_list[0].device[4].device_ip: \"192.1.27.6\" is also that of "
            "$.server_list[0].device[0].device_ip\n");
}

TEST(RankTableCheck, HardwareLimitsAreWarnings) {
  const auto only = [](std::vector<int> ids) {
    RankTable table = sample_table(1, 8);
    auto& devices = table.servers[0].devices;
    std::erase_if(devices, [&](const RankTableDevice& device) {
      return std::find(ids.begin(), ids.end(), device.device_id) == ids.end();
    });
    return rules(table);
  };
  EXPECT_EQ(only({4, 5}), "");
  EXPECT_EQ(only({4, 5, 6, 7}), "");
  EXPECT_EQ(only({0, 1, 2}),
            "$.server_list[0].device: warning: 3 devices: a host must use 1, 2, 4 or 8\n");
  EXPECT_EQ(only({3, 4}),
            "$.server_list[0].device: warning: devices 3, 4: 2 or 4 devices must all be of 0-3 or "
            "all of 4-7\n");
  EXPECT_EQ(rules(sample_table(2, 4)),
            "$.server_list[0].device: warning: 4 devices: of several hosts each must use 8\n"
            "$.server_list[1].device: warning: 4 devices: of several hosts each must use 8\n");
  RankTable ninth = sample_table(1, 1);
  ninth.servers[0].devices[0].device_id = 8;
  EXPECT_EQ(rules(ninth),
            "$.server_list[0].device: warning: device 8: Ascend hosts have devices 0 to 7\n");
}

TEST(RankTableCheck, SubnetsOfEitherGenerationWillDo) {
  RankTable table = sample_table(1, 8);
  EXPECT_TRUE(check_subnets(table, AscendGeneration::kTraining).empty());
  EXPECT_FALSE(check_subnets(table, AscendGeneration::kA2).empty());
  for (int i = 0; i < 8; ++i)
    table.servers[0].devices[i].device_ip = fmt::format("10.1.1.{}", i + 1);
  EXPECT_TRUE(check_subnets(table, AscendGeneration::kA2).empty());
  EXPECT_FALSE(check_subnets(table, AscendGeneration::kTraining).empty());
  EXPECT_EQ(rules(table), "");
}

TEST(RankTableCheck, WrongSubnetsOfTheTrainingSeries) {
  RankTable table = sample_table(2, 8);
  table.servers[0].devices[4].device_ip = "192.2.27.8";  // 0's twin, and 5's subnet
  const auto faults = lines_of_faults(check_subnets(table, AscendGeneration::kTraining));
  EXPECT_EQ(faults,
            "$.server_list[0].device[4].device_ip: warning: Atlas training series: 192.2.27.8 and "
            "192.1.27.6 ($.server_list[0].device[0].device_ip) are in different subnets, devices N "
            "and N+4 share one\n"
            "$.server_list[0].device[5].device_ip: warning: Atlas training series: 192.2.27.7 and "
            "192.2.27.8 ($.server_list[0].device[4].device_ip) are in one subnet, devices 0-3 and "
            "4-7 have four each\n"
            "$.server_list[1].device[4].device_ip: warning: Atlas training series: 192.1.27.9 and "
            "192.2.27.8 ($.server_list[0].device[4].device_ip) are in different subnets, equal "
            "device ids share one\n");
  EXPECT_NE(rules(table).find("Atlas A2"), std::string::npos) << "neither generation is met";
}

}  // namespace
}  // namespace lockstep
