// Output of firewall programs, rounds of measurements, and the report.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "lockstep/launch/doctor/examine.h"
#include "lockstep/launch/doctor/firewall.h"
#include "lockstep/launch/doctor/report.h"
#include "tests/launch/doctor/hosts.h"

namespace lockstep::doctor {
namespace {

using lockstep::testing::sound_hosts;

TEST(DoctorFirewall, Nft) {
  const auto state = [](const std::string& rules) { return read_nft({0, rules, ""}).state; };
  EXPECT_EQ(state(""), FirewallState::kOff);
  EXPECT_EQ(
      state("table inet filter {\n\tchain input {\n\t\ttype filter hook input priority 0; "
            "policy accept;\n\t}\n\tchain forward {\n\t\ttype filter hook forward priority 0; "
            "policy drop;\n\t\tdrop\n\t}\n}\n"),
      FirewallState::kOff)
      << "what is forwarded does not concern the host";
  EXPECT_EQ(state("chain input {\n type filter hook input priority 0; policy drop;\n}"),
            FirewallState::kOn);
  const auto rule =
      read_nft({0,
                "table inet filter {\nchain input {\n type filter hook input priority 0; policy "
                "accept;\n ct state invalid drop\n tcp dport 29500 drop\n}",
                ""});
  EXPECT_EQ(rule.state, FirewallState::kOn);
  EXPECT_EQ(rule.detail, "tcp dport 29500 drop");
  EXPECT_EQ(rule.chain, "inet filter input");
  EXPECT_EQ(read_nft({127, "", ""}).state, FirewallState::kAbsent);
  const auto denied = read_nft({1, "", "Operation not permitted (you must be root)\n"});
  EXPECT_EQ(denied.state, FirewallState::kUnknown);
  EXPECT_EQ(denied.detail, "Operation not permitted (you must be root)");
}

TEST(DoctorFirewall, TheOthers) {
  EXPECT_EQ(read_iptables({0, "-P INPUT ACCEPT\n-P FORWARD DROP\n", ""}).state,
            FirewallState::kOff);
  EXPECT_EQ(read_iptables({0, "-P INPUT DROP\n", ""}).detail, "-P INPUT DROP");
  EXPECT_EQ(read_iptables({0, "-P INPUT ACCEPT\n-A INPUT -p tcp -j REJECT\n", ""}).state,
            FirewallState::kOn);
  EXPECT_EQ(read_ufw({0, "Status: inactive\n", ""}).state, FirewallState::kOff);
  EXPECT_EQ(read_ufw({0, "Status: active\n", ""}).state, FirewallState::kOn);
  EXPECT_EQ(read_firewalld({0, "running\n", ""}).state, FirewallState::kOn);
  EXPECT_EQ(read_firewalld({252, "not running\n", ""}).state, FirewallState::kOff);
}

TEST(DoctorTournament, EachPairOnceAndEachHostOnceARound) {
  for (const int n : {1, 2, 3, 8, 9}) {
    std::set<std::pair<int, int>> pairs;
    for (const auto& round : tournament(n)) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second) << n;
        EXPECT_TRUE(pairs.insert({a, b}).second) << n;
      }
    }
    EXPECT_EQ(static_cast<int>(pairs.size()), n * (n - 1) / 2);
  }
}

TEST(DoctorTournament, OfManyHostsARingAndSomeByLot) {
  for (const int n : {65, 66, 67, 1000}) {
    std::set<std::pair<int, int>> pairs;
    const Rounds rounds = speed_rounds(n);
    EXPECT_LE(rounds.size(), 11U) << "however many hosts there are";
    for (const auto& round : rounds) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_TRUE(a >= 0 && a < n && b >= 0 && b < n && a != b) << n << ": " << a << ", " << b;
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second) << n;
        pairs.insert({std::min(a, b), std::max(a, b)});
      }
    }
    for (int host = 0; host < n; ++host) {
      const int next = (host + 1) % n;
      EXPECT_TRUE(pairs.contains({std::min(host, next), std::max(host, next)}))
          << n << ": " << host;
    }
  }
}

TEST(DoctorTournament, AProbeLivesForAllRounds) {
  ExamineOptions options;
  options.seconds = 60;
  EXPECT_GT(longest_examination(options, 8), std::chrono::minutes(14)) << "7 rounds, each way";
}

TEST(DoctorReport, ForPeople) {
  Findings all = sound_hosts(2);
  all.hosts[1].facts.somaxconn = 128;
  all.speeds[1].gbit_s = 0.5;
  const auto rows = evaluate(all);
  const std::string text = report_text(all, rows, false);
  EXPECT_NE(text.find("pass  answers          2 hosts\n"), std::string::npos) << text;
  EXPECT_NE(text.find("warn  backlogs         h2: net.core.somaxconn is 128, below 1024: "
                      "connections can fail at random when all start at once\n"
                      "                       mend: sudo sysctl -w net.core.somaxconn=65535\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\nGbit/s from, to       h1        h2\n"
                      "  h1                   -      9.40\n"
                      "  h2                0.50 <       -\n"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("2 warnings, 0 failed\n")) << text;
  EXPECT_EQ(text.find('\033'), std::string::npos) << "no colours for files";
  EXPECT_NE(report_text(all, rows, true).find('\033'), std::string::npos);
  EXPECT_EQ(exit_status_of(rows), 0) << "warnings do not fail";
}

TEST(DoctorReport, ForPrograms) {
  Findings all = sound_hosts(2);
  all.links[0].problem = "no answer";
  const auto rows = evaluate(all);
  EXPECT_EQ(exit_status_of(rows), 1);
  const auto json = nlohmann::json::parse(report_json(all, rows));
  EXPECT_EQ(json["verdict"], "fail");
  EXPECT_EQ(json["hosts"][1]["name"], "h2");
  EXPECT_EQ(json["hosts"][1]["facts"]["somaxconn"], 4096);
  EXPECT_EQ(json["links"][0]["problem"], "no answer");
  EXPECT_EQ(json["pairs"][0]["slow"], false);
}

}  // namespace
}  // namespace lockstep::doctor
