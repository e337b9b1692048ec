// Rank tables, byte for byte as written by Python's json module.

#include <gtest/gtest.h>

#include <cstdlib>

#include "lockstep/base/file.h"
#include "lockstep/world/rank_table/rank_table.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/world/rank_table/sample_table.h"

namespace lockstep {
namespace {

/// `json` as Python reads it and json.dump(indent=4) writes it again.
std::string through_python(const std::string& json) {
  const TempFolder folder;
  write_file_atomically(folder / "in", json);
  const std::string command =
      "/usr/bin/python3 -c 'import json, sys; json.dump(json.load(open("
      "sys.argv[1])), open(sys.argv[2], \"w\"), indent=4)' " +
      (folder / "in").string() + " " + (folder / "out").string();
  EXPECT_EQ(std::system(command.c_str()), 0);
  return read_file(folder / "out");
}

TEST(RankTableWrite, FieldsInTheToolsOrder) {
  EXPECT_EQ(format_rank_table(testing::sample_table(1, 1)), R"({
    "version": "1.0",
    "server_count": "1",
    "server_list": [
        {
            "server_id": "10.0.0.1",
            "device": [
                {
                    "device_id": "0",
                    "device_ip": "192.1.27.6",
                    "rank_id": "0"
                }
            ],
            "host_nic_ip": "reserve"
        }
    ],
    "status": "completed"
})");
}

TEST(RankTableWrite, AsPythonWritesIt) {
  RankTable odd = testing::sample_table(2, 8);
  odd.servers[0].server_id = "caf\u00e9 \U0001F600 \"quoted\" back\\slash \t\x01\x7f";
  odd.servers[1].devices.clear();
  odd.servers[1].host_nic_ip = "";
  for (const RankTable& table : {testing::sample_table(1, 1), testing::sample_table(3, 8), odd}) {
    const std::string ours = format_rank_table(table);
    EXPECT_EQ(ours, through_python(ours));
  }
}

TEST(RankTableWrite, ReadsBackEqual) {
  const std::string text = format_rank_table(testing::sample_table(3, 8));
  const auto again = read_rank_table(text);
  EXPECT_TRUE(again.faults.empty());
  EXPECT_EQ(format_rank_table(again.table), text);
}

TEST(RankTableWrite, RefusesWhatIsNotUtf8) {
  RankTable table = testing::sample_table(1, 1);
  table.servers[0].server_id = "\xff";
  EXPECT_EQ(error_of([&] { format_rank_table(table); }).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
