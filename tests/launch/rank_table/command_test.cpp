// `lockstep ranktable` as users call it, in a folder of its own.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lockstep/base/file.h"
#include "lockstep/world/rank_table/rank_table.h"
#include "tests/launch/launched.h"
#include "tests/support/temp_folder.h"
#include "tests/world/rank_table/sample_table.h"

namespace lockstep {
namespace {

class RankTableCommand : public ::testing::Test {
 protected:
  struct Ended {
    int status;
    std::string out;
    std::string err;
  };

  /// Runs a shell line in the folder; $L is lockstep, and the folder comes first in PATH.
  Ended shell(const std::string& line) {
    const std::string lockstep = testing::built_program("lockstep");
    testing::Launched launched(
        {"/bin/sh", "-c", "cd " + folder_.path().string() + " && " + line},
        {{"L", lockstep}, {"PATH", folder_.path().string() + ":/bin:/usr/bin"}});
    const int status = launched.wait();
    return {status, launched.out(), launched.err()};
  }

  void write_conf(const std::string& name, int first_octet) {
    std::string text;
    for (int i = 0; i < 8; ++i)
      text += fmt::format("address_{}=192.{}.27.{}\n", i, i % 4 + 1, first_octet + i / 4);
    write_file_atomically(folder_ / name, text);
  }

  TempFolder folder_;
};

TEST_F(RankTableCommand, PrintsAndWritesWhatTheToolDoes) {
  write_conf("hccn.conf", 6);
  const auto ended =
      shell("$L ranktable --device_num '[0,2)' --server_ip 10.0.0.1 --hccn_conf hccn.conf");
  EXPECT_EQ(ended.status, 0) << ended.err;
  const auto file = folder_ / "hccl_2p_01_10.0.0.1.json";
  EXPECT_EQ(ended.out,
            "start lockstep ranktable\n"
            "visible_devices:['0', '1', '2', '3', '4', '5', '6', '7']\n"
            "server_id:10.0.0.1\n"
            "device_num_list: [0, 1]\n"
            "rank_id:0, device_id:0, device_ip:192.1.27.6\n"
            "rank_id:1, device_id:1, device_ip:192.2.27.6\n"
            "Completed: hccl file was save in : " +
                file.string() + "\n");
  EXPECT_EQ(read_file(file), format_rank_table(testing::sample_table(1, 2)));
}

TEST_F(RankTableCommand, AsksHccnToolFirst) {
  write_file_atomically(folder_ / "hccn_tool",
                        "#!/bin/sh\n[ \"$1 $3 $4\" = '-i -ip -g' ] && echo ipaddr:10.1.1.$2 && "
                        "echo netmask:255.255.255.0\n");
  ::chmod((folder_ / "hccn_tool").c_str(), 0755);
  const auto ended = shell("$L ranktable --device_num '[4,8)' --server_ip h1");
  EXPECT_EQ(ended.status, 0) << ended.err;
  const RankTable table = load_rank_table(folder_ / "hccl_4p_4567_h1.json");
  EXPECT_EQ(table.servers[0].devices[3].device_ip, "10.1.1.7");
}

TEST_F(RankTableCommand, WithoutDevicesItSaysHowToDoWithout) {
  const auto ended = shell("$L ranktable --device_num '[0,8)' --server_ip h1");
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.err.find("for processes without devices, --hosts 127.0.0.1:8"), std::string::npos)
      << ended.err;
}

TEST_F(RankTableCommand, AddressesByHand) {
  const auto ended = shell(
      "$L ranktable --device_num '[0,2)' --visible_devices 6,7 --server_ip h1 "
      "--device_ip 10.1.1.1,10.1.1.2");
  EXPECT_EQ(ended.status, 0) << ended.err;
  const RankTable table = load_rank_table(folder_ / "hccl_2p_01_h1.json");
  EXPECT_EQ(table.servers[0].devices[0].device_id, 6);
  EXPECT_EQ(table.servers[0].devices[1].device_ip, "10.1.1.2");
}

TEST_F(RankTableCommand, WritesNothingWhenTheUserIsWrong) {
  for (const std::string line :
       {"--device_num '[3,6)' --server_ip h1",
        "--visible_devices 4,5,6,7 --device_num '[4,8)' --server_ip h1 --hccn_conf /dev/null",
        "--server_ip h1 --hccn_conf none.conf",
        "--server_ip a/b --device_num '[0,1)' --device_ip 1.1.1.1", "--merge none.json", "--merge",
        "--hosts h1:0", "--chek x", "--merge --check x", "table.json"}) {
    const auto ended = shell("$L ranktable " + line);
    EXPECT_EQ(ended.status, 2) << line << "\n" << ended.out << ended.err;
    EXPECT_NE(ended.err.find(": error: "), std::string::npos) << line;
    EXPECT_EQ(ended.out.find("start lockstep"), std::string::npos) << line << "\n" << ended.out;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(RankTableCommand, MergesAndChecks) {
  write_conf("1.conf", 6);
  write_conf("2.conf", 8);
  const auto ended = shell(
      "$L ranktable --hccn_conf 1.conf --server_ip 10.0.0.1 >/dev/null && "
      "$L ranktable --hccn_conf 2.conf --server_ip 10.0.0.2 >/dev/null && "
      "$L ranktable --merge hccl_8p_01234567_10.0.0.1.json hccl_8p_01234567_10.0.0.2.json && "
      "$L ranktable --check hccl_2s_16p.json");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out,
            "['hccl_8p_01234567_10.0.0.1.json', 'hccl_8p_01234567_10.0.0.2.json']\n"
            "Completed: hccl file was save in : " +
                (folder_ / "hccl_2s_16p.json").string() +
                "\n"
                "hccl_2s_16p.json: sound: 2 servers, 16 ranks\n");
  EXPECT_EQ(read_file(folder_ / "hccl_2s_16p.json"),
            format_rank_table(testing::sample_table(2, 8)));
}

TEST_F(RankTableCommand, CheckTellsEachFaultAndEndsWithTwo) {
  RankTable table = testing::sample_table(1, 3);
  write_file_atomically(folder_ / "warned", format_rank_table(table));
  table.servers[0].devices[2].rank = 1;
  write_file_atomically(folder_ / "wrong", format_rank_table(table));
  const auto warned = shell("$L ranktable --check warned");
  EXPECT_EQ(warned.status, 0);
  EXPECT_EQ(warned.out,
            "warned: $.server_list[0].device: warning: 3 devices: a host must use 1, 2, 4 or 8\n");
  const auto wrong = shell("$L ranktable --check wrong");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.out,
            "wrong: $.server_list[0].device[2].rank_id: \"1\" is also that of "
            "$.server_list[0].device[1]\n"
            "wrong: $.server_list: no device has rank 2; 3 devices have ranks 0 to 2\n"
            "wrong: $.server_list[0].device: warning: 3 devices: a host must use 1, 2, 4 or 8\n");
}

TEST_F(RankTableCommand, TableOfPlainHosts) {
  const auto ended =
      shell("$L ranktable --hosts h1:2,h2:2 && $L ranktable --check hccl_2s_4p.json");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_TRUE(ended.out.ends_with("2 servers, 4 ranks, no device_ip (for CPU or GPU hosts)\n"));
}

}  // namespace
}  // namespace lockstep
