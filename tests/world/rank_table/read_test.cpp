#include <gtest/gtest.h>

#include "lockstep/base/file.h"
#include "lockstep/world/rank_table/rank_table.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/world/rank_table/sample_table.h"

namespace lockstep {
namespace {

const char* const kDocumented = R"({"version": "1.0", "server_count": "1",
 "server_list": [{"server_id": "10.0.0.1",
   "device": [{"device_id": "4", "device_ip": "192.1.27.6", "rank_id": "0"}],
   "host_nic_ip": "reserve"}],
 "status": "completed"})";

/// The documented table with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kDocumented;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// The reader's faults in `text`, a line each.
std::string faults_of_text(const std::string& text) {
  std::string lines;
  for (const auto& fault : read_rank_table(text).faults) lines += to_string(fault) + "\n";
  return lines;
}

TEST(RankTableRead, TakesTheDocumentedTable) {
  const auto reading = read_rank_table(kDocumented);
  EXPECT_TRUE(reading.faults.empty()) << to_string(reading.faults[0]);
  const RankTable& table = reading.table;
  EXPECT_EQ(table.server_count, 1);
  ASSERT_EQ(table.servers.size(), 1U);
  EXPECT_EQ(table.servers[0].server_id, "10.0.0.1");
  EXPECT_EQ(table.servers[0].host_nic_ip, "reserve");
  ASSERT_EQ(table.servers[0].devices.size(), 1U);
  EXPECT_EQ(table.servers[0].devices[0].device_id, 4);
  EXPECT_EQ(table.servers[0].devices[0].device_ip, "192.1.27.6");
  EXPECT_EQ(table.servers[0].devices[0].rank, 0);
}

TEST(RankTableRead, SaysWhereWhatIsWrong) {
  struct Row {
    const char* from;
    const char* to;
    const char* said;
  };
  const Row rows[] = {
      {"\"rank_id\": \"0\"", "\"rankid\": \"0\"",
       "$.server_list[0].device[0].rank_id: missing, did you mean 'rankid'?\n"},
      {"\"rank_id\": \"0\"", "\"rank_id\": \"00\"",
       "$.server_list[0].device[0].rank_id: \"00\" is no whole number from 0 to 9999999\n"},
      {"\"rank_id\": \"0\"", "\"rank_id\": \"-1\"",
       "$.server_list[0].device[0].rank_id: \"-1\" is no whole number from 0 to 9999999\n"},
      {"\"rank_id\": \"0\"", "\"rank_id\": 0",
       "$.server_list[0].device[0].rank_id: warning: a number, as merge_hccl.py writes it; the "
       "format has strings (\"0\")\n"},
      {"\"device_id\": \"4\"", "\"device_id\": 4",
       "$.server_list[0].device[0].device_id: a number, must be a string (write \"4\")\n"},
      {"192.1.27.6", "192.1.27",
       "$.server_list[0].device[0].device_ip: \"192.1.27\" is no IPv4 or "
       "IPv6 address\n"},
      {"192.1.27.6", "",
       "$.server_list[0].device[0].device_ip: empty: leave it out or write an "
       "address\n"},
      {"\"rank_id\"", "\"device_port\": \"65536\", \"rank_id\"",
       "$.server_list[0].device[0].device_port: \"65536\" is no port from 1 to 65535\n"},
      {"\"10.0.0.1\"", "\"\"",
       "$.server_list[0].server_id: \"\" has 0 characters; 1 to 63 are allowed\n"},
      {"\"10.0.0.1\"", "\"a b\"",
       "$.server_list[0].server_id: has a blank or a control character in it\n"},
      {"\"10.0.0.1\"", "[]", "$.server_list[0].server_id: an array, must be a string\n"},
      {"\"server_count\": \"1\"", "\"server_count\": \"one\"",
       "$.server_count: \"one\" is no whole number from 0 to 9999999\n"},
      {"\"version\": \"1.0\"", "\"version\": \"1.2\"",
       "$.version: warning: \"1.2\" is not known here; read as \"1.0\"\n"},
      {"\"status\": \"completed\"", "\"state\": \"completed\"",
       "$.status: missing, did you mean 'state'?\n"},
      {"\"host_nic_ip\": \"reserve\"", "\"host_nic_ip\": null",
       "$.server_list[0].host_nic_ip: a null, must be a string\n"},
      {"[{\"device_id\"", "[7, {\"device_id\"",
       "$.server_list[0].device[0]: a number, must be an object\n"},
      {"\"version\": \"1.0\"", "\"status\": \"completed\"", "$: an object has 'status' twice\n"},
      {"\"version\": \"1.0\",", "", "$.version: missing\n"},
  };
  for (const Row& row : rows) EXPECT_EQ(faults_of_text(changed(row.from, row.to)), row.said);
}

TEST(RankTableRead, ListsAllFaultsOfAFile) {
  EXPECT_EQ(faults_of_text(R"({"version": "1.0", "server_list": [{"device": []}, []]})"),
            "$.server_count: missing\n"
            "$.status: missing\n"
            "$.server_list[0].server_id: missing\n"
            "$.server_list[0].device: empty: there must be a device\n"
            "$.server_list[1]: an array, must be an object\n");
}

TEST(RankTableRead, RefusesWhatIsNoJsonOrOutOfBounds) {
  EXPECT_NE(faults_of_text("{\"version\": ").find("$: not JSON: parse error at line 1"),
            std::string::npos);
  EXPECT_NE(faults_of_text("").find("$: not JSON"), std::string::npos);
  EXPECT_EQ(faults_of_text("[]"), "$: an array, must be an object\n");
  EXPECT_EQ(faults_of_text(std::string(100, '[')), "$: nested deeper than 12 levels\n");
  std::string many = "{";
  for (int i = 0; i < 200; ++i) many += fmt::format("\"{}\": 1, ", i);
  EXPECT_EQ(faults_of_text(many), "$: an object has more than 100 names\n");
  EXPECT_EQ(faults_of_text(std::string(kMaxRankTableBytes + 1, ' ')),
            "$: 64.0 MiB are too many; at most 64.0 MiB are read\n");
}

TEST(RankTableRead, LoadNamesFileAndFirstFault) {
  const TempFolder folder;
  const auto file = folder / "hccl.json";
  EXPECT_EQ(error_of([&] { load_rank_table(file); }).code(), ErrorCode::kNotFound);

  write_file_atomically(file, kDocumented);
  EXPECT_EQ(num_ranks(load_rank_table(file)), 1);

  write_file_atomically(file, changed("\"rank_id\": \"0\"", "\"rank_id\": \"1\""));
  const Error wrong_rank = error_of([&] { load_rank_table(file); });
  EXPECT_EQ(wrong_rank.code(), ErrorCode::kCorrupt);
  EXPECT_EQ(wrong_rank.what(), "rank table " + file.string() +
                                   ": $.server_list[0].device[0].rank_id: \"1\" is above 0, the "
                                   "last of 1 devices' ranks; and 1 more (lockstep ranktable "
                                   "--check lists all)");
}

TEST(RankTableRead, WarningsDoNotKeepATableFromBeingLoaded) {
  const TempFolder folder;
  const auto file = folder / "hccl.json";
  write_file_atomically(file, changed("\"rank_id\": \"0\"", "\"rank_id\": 0"));
  EXPECT_EQ(load_rank_table(file).servers[0].devices[0].rank, 0);
}

TEST(RankTableRead, FindsRanks) {
  const RankTable table = testing::sample_table(2, 4);
  EXPECT_EQ(num_ranks(table), 8);
  ASSERT_TRUE(find_rank(table, 6));
  EXPECT_EQ(find_rank(table, 6)->node_rank, 1);
  EXPECT_EQ(find_rank(table, 6)->local_rank, 2);
  EXPECT_FALSE(find_rank(table, 8));
}

}  // namespace
}  // namespace lockstep
