#include "lockstep/launch/start/host_slots.h"

#include <gtest/gtest.h>

#include "lockstep/base/addresses.h"
#include "lockstep/base/host_name.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using Text = std::string;
using Words = std::vector<Text>;

Words shown(const std::vector<HostSlots>& hosts) {
  Words all;
  for (const auto& host : hosts) all.push_back(host.host + " " + std::to_string(host.slots));
  return all;
}

template <class Body>
Text said(const Body& body) {
  return error_of(body).what();
}

TEST(HostList, NamesAddressesAndSlots) {
  EXPECT_EQ(shown(parse_host_list("a:2,b,10.0.0.1:8,u@c:1", "-H")),
            (Words{"a 2", "b 1", "10.0.0.1 8", "u@c 1"}));
  EXPECT_EQ(shown(parse_host_list("[fd00::1]:4,[fd00::2],fd00::3", "-H")),
            (Words{"fd00::1 4", "fd00::2 1", "fd00::3 1"}));
  EXPECT_EQ(shown(parse_host_list("a,b,a", "-H")), (Words{"a 2", "b 1"}));
}

TEST(HostList, SlurmsRangesAreSeveralHosts) {
  EXPECT_EQ(shown(parse_host_list("gpu[01-02,7]:4,login2", "-H")),
            (Words{"gpu01 4", "gpu02 4", "gpu7 4", "login2 1"}));
  EXPECT_EQ(shown(parse_host_list("a,n[1-2]-ib", "-H")), (Words{"a 1", "n1-ib 1", "n2-ib 1"}));
}

TEST(HostList, WhatIsNoHostIsNamed) {
  for (const char* list : {"", "a,,b", "a:0", "a:x", "a:-1", ":2", "[::1", "[::1]4", "-oProxy=x",
                           "a;b", "a b", "$(x)", "n[2-1]", "n[", "n[1-x]:2"}) {
    EXPECT_NE(said([&] { parse_host_list(list, "-H"); }).find("-H"), Text::npos) << list;
  }
}

TEST(HostFile, TheFormsOfMpirunMpichAndMsrun) {
  const char* text =
      "# cluster\n"
      "a slots=4 max_slots=8\n"
      "\n"
      "  b:2   # two\n"
      "10.0.0.3\r\n"
      "d  slots=1\n"
      "a slots=1\n";
  EXPECT_EQ(shown(parse_host_file(text, "hosts")), (Words{"a 5", "b 2", "10.0.0.3 1", "d 1"}));
}

TEST(HostFile, ErrorsNameTheLine) {
  EXPECT_NE(said([] { parse_host_file("a\nb slot=2\n", "hosts"); }).find("hosts:2: 'slot=2'"),
            Text::npos);
  EXPECT_NE(said([] { parse_host_file("a slots=none\n", "hosts"); }).find("hosts:1"), Text::npos);
  EXPECT_NE(said([] { parse_host_file("# none\n", "hosts"); }).find("names no host"), Text::npos);
}

TEST(HostPlan, RanksFillSlotsInOrder) {
  const auto hosts = parse_host_list("a:2,b:4,c:2", "-H");
  const auto plan = [&](const HostPlanOptions& options) {
    return shown(plan_hosts(hosts, options));
  };
  EXPECT_EQ(plan({}), (Words{"a 2", "b 4", "c 2"}));
  EXPECT_EQ(plan({5, 0, false}), (Words{"a 2", "b 3"}));
  EXPECT_EQ(plan({0, 3, false}), (Words{"a 3", "b 3", "c 3"}));
  EXPECT_EQ(plan({10, 0, true}), (Words{"a 3", "b 5", "c 2"}));
  EXPECT_NE(said([&] {
              plan_hosts(hosts, {9, 0, false});
            }).find("-n 9 is more than the 8 slots"),
            Text::npos);
  EXPECT_NE(said([] { plan_hosts({}, {}); }).find("no host"), Text::npos);
}

TEST(RemoteWords, TheHostStandsWhereItIsNamed) {
  EXPECT_EQ(remote_words("ssh -o BatchMode=yes", "a", "x y"),
            (Words{"ssh", "-o", "BatchMode=yes", "a", "x y"}));
  EXPECT_EQ(remote_words("env H={host} sh -c", "a", "x y"),
            (Words{"env", "H=a", "sh", "-c", "x y"}));
  EXPECT_NE(said([] { remote_words(" ", "a", "x"); }).find("--rsh is empty"), Text::npos);
}

TEST(ThisHost, IsItsNamesAndAddresses) {
  EXPECT_TRUE(is_this_host("localhost"));
  EXPECT_TRUE(is_this_host(host_name()));
  for (const InterfaceAddress& each : interface_addresses()) {
    EXPECT_TRUE(is_this_host(each.address)) << each.address;
    if (is_loopback(each.address)) continue;
    EXPECT_EQ(rendezvous_address({}, {each.address, "other"}), each.address)
        << "the address by which the user names it";
  }
  EXPECT_FALSE(is_this_host("192.0.2.1")) << "an address for documentation";
  EXPECT_FALSE(is_this_host("other"));
}

TEST(RemoteWords, QuotingLeavesNothingToTheShell) {
  EXPECT_EQ(shell_quoted("/usr/bin/lockstep"), "/usr/bin/lockstep");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("$x"), "'$x'");
}

}  // namespace
}  // namespace lockstep
