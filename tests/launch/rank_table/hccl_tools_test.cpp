#include "lockstep/launch/rank_table/hccl_tools.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/world/rank_table/sample_table.h"

namespace lockstep {
namespace {

const std::vector<std::string> kEight = {"0", "1", "2", "3", "4", "5", "6", "7"};

std::string range_error(const std::string& text) {
  const Error error = error_of([&] { parse_device_range(text); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  return error.what();
}

TEST(HcclTools, DeviceNumIsReadByItsPlaces) {
  EXPECT_EQ(parse_device_range("[0,8)").last, 8);
  EXPECT_EQ(parse_device_range("(0,8]").last, 8) << "brackets are not looked at";
  EXPECT_EQ(parse_device_range("[4,8)").first, 4);
  EXPECT_EQ(parse_device_range("[0,3)").last, 3) << "no power of two is asked for";
  EXPECT_EQ(parse_device_range("[3,3)").last, 3) << "an empty range passes";
  EXPECT_EQ(parse_device_range("[2,4)").last, 4);
}

TEST(HcclTools, DeviceNumIsRefusedInTheToolsWords) {
  EXPECT_EQ(range_error("[0,9)"), "device num [0,9) must be in range [0,8] !");
  EXPECT_EQ(range_error("[4,2)"), "First num 4 of device num [4,2) must less than last num 2 !");
  EXPECT_EQ(range_error("[3,6)"), "device num [3,6) must be in the same group of [0,4] or [4,8] !");
  EXPECT_EQ(range_error("[0, 8)"),
            "device num [0, 8) must look like [0,8): a digit as its character 4");
  EXPECT_EQ(range_error("8"), "device num 8 must look like [0,8): a digit as its character 2");
}

TEST(HcclTools, AddressesFromConfAndTool) {
  const auto addresses = parse_hccn_conf(
      "# comment\naddress_0=192.1.27.6\nnetmask_0=255.255.255.0\r\n  address_10 = 1.2.3.4 \n"
      "address_0=192.1.27.7\n",
      "hccn.conf");
  EXPECT_EQ(addresses, (DeviceAddresses{{"0", "192.1.27.7"}, {"10", "1.2.3.4"}}));
  EXPECT_STREQ(error_of([] { parse_hccn_conf("\naddress_0\n", "hccn.conf"); }).what(),
               "hccn.conf:2: 'address_0' must be address_N=IP");
  EXPECT_EQ(parse_hccn_tool("ipaddr:192.1.27.6\nnetmask:255.255.255.0\n"), "192.1.27.6");
  EXPECT_EQ(parse_hccn_tool("ipaddr:fe80::1\n"), "fe80::1");
  EXPECT_FALSE(parse_hccn_tool(""));
  EXPECT_FALSE(parse_hccn_tool("hccn_tool is busy\n"));
}

TEST(HcclTools, VisibleDevicesNameTheHardware) {
  const DeviceAddresses addresses = {{"4", "192.1.27.6"}, {"5", "192.2.27.6"}};
  const RankTable table = host_table("10.0.0.1", {0, 2}, {"4", "5"}, addresses);
  EXPECT_EQ(table.servers[0].devices[1].device_id, 5);
  EXPECT_EQ(table.servers[0].devices[1].device_ip, "192.2.27.6");
  EXPECT_EQ(table.servers[0].devices[1].rank, 1);
  EXPECT_EQ(host_table_name({0, 2}, "10.0.0.1"), "hccl_2p_01_10.0.0.1.json");

  const auto why = [&](DeviceRange range, const std::vector<std::string>& visible) {
    return std::string(error_of([&] { host_table("h", range, visible, addresses); }).what());
  };
  EXPECT_EQ(why({0, 3}, {"4", "5"}), "2 visible device(s) are too few for 3 devices");
  EXPECT_EQ(why({4, 6}, {"4", "5"}),
            "there is no logical device 4: --visible_devices has 2, so --device_num goes up to "
            "[0,2)");
  EXPECT_EQ(why({0, 1}, kEight),
            "no address is known of device '0' (logical device 0); give it by --hccn_conf or "
            "--device_ip");
}

TEST(HcclTools, MergedRanksFollowTheOrderOfFiles) {
  RankTable second = testing::sample_table(1, 2);
  second.servers[0].server_id = "10.0.0.2";
  std::string extra = format_rank_table(second);
  extra.insert(extra.find("\"device_id\""), "\"super_device_id\": \"9\", ");
  const std::string first = format_rank_table(testing::sample_table(1, 2));
  const MergedTable merged = merge_rank_tables({{"a", extra}, {"b", first}});
  EXPECT_EQ(merged.table.server_count, 2);
  EXPECT_EQ(merged.table.servers[0].server_id, "10.0.0.2");
  EXPECT_EQ(merged.table.servers[1].devices[1].rank, 3);
  EXPECT_NE(merged.json.find("\"super_device_id\": \"9\""), std::string::npos);
  EXPECT_EQ(merged_table_name(2, 4), "hccl_2s_4p.json");
}

TEST(HcclTools, MergeRefusesWhatWouldBeBroken) {
  const std::string table = format_rank_table(testing::sample_table(1, 1));
  const auto why = [](const std::vector<RankTableText>& files) {
    const Error error = error_of([&] { merge_rank_tables(files); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    return std::string(error.what());
  };
  EXPECT_EQ(why({{"a", table}, {"b", table}}),
            "the merged table: $.server_list[1].server_id: \"10.0.0.1\" is also that of "
            "$.server_list[0]");
  EXPECT_EQ(why({{"a", table}, {"b", "{}"}}), "b: $.version: missing");
}

TEST(HcclTools, PlainHosts) {
  const RankTable table = plain_table("h1:2,10.0.0.2,h3:1");
  EXPECT_EQ(num_ranks(table), 4);
  EXPECT_EQ(table.servers[1].server_id, "10.0.0.2");
  EXPECT_EQ(table.servers[2].devices[0].rank, 3);
  EXPECT_FALSE(is_for_ascend(table));
  for (const char* wrong : {"", "h1:0", "h1:x", "h1,h1", "a/b", "h1,,h2"})
    EXPECT_EQ(error_of([&] { plain_table(wrong); }).code(), ErrorCode::kInvalidArgument) << wrong;
}

TEST(HcclTools, ListsAsPythonPrintsThem) {
  EXPECT_EQ(python_list({"0", "1"}), "['0', '1']");
  EXPECT_EQ(python_list({"it's", "back\\slash"}), "[\"it's\", 'back\\\\slash']");
}

}  // namespace
}  // namespace lockstep
