// `lockstep doctor` as users call it; other hosts are loopback addresses behind a false ssh.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/file.h"
#include "lockstep/base/socket.h"
#include "lockstep/world/rank_table/rank_table.h"
#include "tests/launch/launched.h"
#include "tests/support/temp_folder.h"
#include "tests/world/rank_table/sample_table.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kLong{200};  // only reached on a busy machine

class DoctorCommand : public ::testing::Test {
 protected:
  DoctorCommand() {
    // 127.0.0.8 refuses, 127.0.0.9 never answers.
    write_file_atomically(rsh(),
                          "#!/bin/sh\n"
                          "echo \"$1\" >> \"$0.hosts\"\n"
                          "[ $1 = 127.0.0.8 ] && { echo 'ssh: no route to host' >&2; exit 255; }\n"
                          "[ $1 = 127.0.0.9 ] && exec sleep 1000\n"
                          "shift; exec /bin/sh -c \"$*\"\n");
    ::chmod(rsh().c_str(), 0755);
  }
  std::string rsh() const { return (folder_ / "rsh").string(); }

  nlohmann::json examine(std::vector<std::string> words, int* status) {
    words.insert(words.begin(), {"doctor", "--json", "--rsh", rsh()});
    testing::Launched launched(words);
    *status = launched.wait(kLong);
    EXPECT_TRUE(launched.wait_all_gone()) << "a probe is left over";
    auto json = nlohmann::json::parse(launched.out(), nullptr, false);
    EXPECT_TRUE(json.is_object()) << launched.out() << launched.err();
    return json;
  }

  /// "verdict: text" of the first row of a check; "" if there is none.
  static std::string row(const nlohmann::json& report, const std::string& check) {
    for (const auto& each : report["checks"]) {
      if (each["check"] == check)
        return each["verdict"].get<std::string>() + ": " + each["text"].get<std::string>();
    }
    return "";
  }

  TempFolder folder_;
};

TEST_F(DoctorCommand, ThreeHosts) {
  int status = 0;
  const auto report = examine(
      {"--hosts", "127.0.0.[2-3]:4,127.0.0.4", "--ports", "0", "--seconds", "0.02"}, &status);
  EXPECT_EQ(status, report["verdict"] == "fail" ? 1 : 0);
  EXPECT_EQ(row(report, "answers"), "pass: 3 hosts");
  EXPECT_EQ(row(report, "machines"), "warn: 127.0.0.2, 127.0.0.3, 127.0.0.4 are one machine");
  EXPECT_EQ(row(report, "links"), "pass: 3 pairs, each way, on every port");
  EXPECT_EQ(row(report, "names"), "pass: each host resolves all names");
  EXPECT_EQ(report["pairs"].size(), 6U);
  for (const auto& pair : report["pairs"]) EXPECT_GT(pair["gbit_s"].get<double>(), 0) << pair;
  const auto& facts = report["hosts"][0]["facts"];
  EXPECT_GT(facts["cores"].get<int>(), 0);
  EXPECT_GT(facts["somaxconn"].get<int>(), 0);
  EXPECT_EQ(read_file(rsh() + ".hosts").size(), 3 * std::string("127.0.0.2\n").size());
}

TEST_F(DoctorCommand, HostThatRefusesIsARowThatNamesTheCommand) {
  int status = 0;
  const auto report = examine({"--hosts", "127.0.0.2,127.0.0.8", "--ports", "0"}, &status);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(row(report, "answers"),
            "fail: 127.0.0.8: the command ended with exit code 255: ssh: no route to host");
  const std::string mend = report["checks"][0]["mend"];
  EXPECT_TRUE(mend.starts_with("run by hand: " + rsh() + " 127.0.0.8 ")) << mend;
  EXPECT_NE(row(report, "lockstep"), "") << "the other host is examined all the same";
}

TEST_F(DoctorCommand, HostThatNeverAnswersIsGivenUp) {
  int status = 0;
  const auto report = examine({"--hosts", "127.0.0.9", "--timeout", "0.5"}, &status);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(row(report, "answers"), "fail: 127.0.0.9: no answer in time");
}

TEST_F(DoctorCommand, MissingRshIsARow) {
  testing::Launched launched({"doctor", "--rsh", "/none/ssh", "--hosts", "h1"});
  EXPECT_EQ(launched.wait(kLong), 1);
  EXPECT_NE(launched.out().find("fail  answers  h1: /none/ssh: no such program\n"
                                "               mend: run by hand: /none/ssh h1 "),
            std::string::npos)
      << launched.out();
  EXPECT_TRUE(launched.out().ends_with("\n0 passed, 0 warnings, 1 failed\n"));
}

TEST_F(DoctorCommand, ThisHostAloneAndItsTakenPort) {
  const UniqueFd other = tcp_listen("0.0.0.0", 0);
  int status = 0;
  const auto report =
      examine({"--ports", std::to_string(local_port(other.get())), "--log_dir", "/dev/null/folder"},
              &status);
  EXPECT_EQ(status, 1);
  EXPECT_NE(row(report, "ports").find("is already in use"), std::string::npos);
  EXPECT_NE(row(report, "disks").find("/dev/null/folder: /dev/null is no folder"),
            std::string::npos);
}

TEST_F(DoctorCommand, HostsAndAddressesOfARankTable) {
  RankTable table = testing::sample_table(2, 8);
  table.servers[0].server_id = "127.0.0.2";
  table.servers[1].server_id = "127.0.0.3";
  table.servers[1].devices[7].device_ip = "10.9.9.9";
  write_file_atomically(folder_ / "table.json", format_rank_table(table));
  int status = 0;
  const auto report =
      examine({"--rank_table", (folder_ / "table.json").string(), "--ports", "0", "--seconds", "0"},
              &status);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(row(report, "answers"), "pass: 2 hosts");
  EXPECT_NE(row(report, "device addresses").find("10.9.9.9"), std::string::npos);
  EXPECT_TRUE(report["pairs"].empty());
}

TEST_F(DoctorCommand, WhatHcclsToolSaysOfDevices) {
  write_file_atomically(folder_ / "hccn_tool",
                        "#!/bin/sh\n"
                        "case \"$2 $3\" in\n"
                        "  '1 -lldp') ;;\n"
                        "  *-ip) echo ipaddr:192.1.$2.6 ;;\n"
                        "  *-link) echo link status: UP ;;\n"
                        "  '3 -net_health') echo net health status: Fault ;;\n"
                        "  *-net_health) echo net health status: Success ;;\n"
                        "  *-lldp) echo Chassis ID TLV ;;\n"
                        "esac\n");
  ::chmod((folder_ / "hccn_tool").c_str(), 0755);
  testing::Launched launched({"doctor", "--json", "--ports", "0"},
                             {{"PATH", folder_.path().string() + ":" + ::getenv("PATH")}});
  EXPECT_EQ(launched.wait(kLong), 1);
  const auto report = nlohmann::json::parse(launched.out(), nullptr, false);
  ASSERT_TRUE(report.is_object()) << launched.out() << launched.err();
  EXPECT_NE(row(report, "device links").find(": device 3: net health status: Fault"),
            std::string::npos);
  EXPECT_NE(row(report, "device switches").find(": device 1 sees no switch"), std::string::npos);
}

TEST_F(DoctorCommand, RshMayHaveThePlaceOfTheHost) {
  // Each has a host id of its own; its name replaces {host} and appears nowhere else.
  int status = 0;
  testing::Launched launched({"doctor", "--json", "--ports", "0", "--seconds", "0", "--rsh",
                              "env LOCKSTEP_HOST_ID={host} sh -c", "--hosts",
                              "127.0.0.2,127.0.0.3"});
  status = launched.wait(kLong);
  const auto report = nlohmann::json::parse(launched.out(), nullptr, false);
  ASSERT_TRUE(report.is_object()) << launched.out() << launched.err();
  EXPECT_EQ(status, report["verdict"] == "fail" ? 1 : 0);
  EXPECT_EQ(row(report, "answers"), "pass: 2 hosts");
  for (const size_t i : {0, 1}) {
    EXPECT_NE(report["hosts"][i]["facts"]["host_id"].get<std::string>().find("127.0.0." +
                                                                             std::to_string(2 + i)),
              std::string::npos)
        << report["hosts"][i];
  }
}

TEST_F(DoctorCommand, UsageErrorsExitWithTwo) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--hosts", "a,a"},
                                             {"--hosts", "-x"},
                                             {"--hosts", "a[1-2],a2"},
                                             {"--hosts", "a[2-1]"},
                                             {"--ports", "70000"},
                                             {"--ports", "5-4"},
                                             {"--seconds", "x"},
                                             {"--host", "a"},
                                             {"backend"},
                                             {"--rank_table", "/none"}}) {
    std::vector<std::string> all = words;
    all.insert(all.begin(), "doctor");
    testing::Launched launched(all);
    EXPECT_EQ(launched.wait(kLong), 2) << words[0] << " " << launched.out() << launched.err();
  }
}

}  // namespace
}  // namespace lockstep
