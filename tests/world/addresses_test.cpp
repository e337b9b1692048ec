#include "lockstep/world/addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

using Texts = std::vector<std::string>;

TEST(Addresses, ThoseThatOthersReachComeFirst) {
  const std::vector<InterfaceAddress> all = {
      {"lo", "127.0.0.1"},     {"docker0", "172.17.0.1"}, {"eth0", "fe80::1"},
      {"eth0", "2001:db8::1"}, {"eth0", "10.0.0.1"},      {"ib0", "192.168.1.1"},
      {"eth2", "169.254.3.4"},
  };
  EXPECT_EQ(order_addresses(all, {}, {}),
            (Texts{"10.0.0.1", "192.168.1.1", "2001:db8::1", "172.17.0.1"}));
  EXPECT_EQ(order_addresses(all, {"192.168.1.1"}, {}).front(), "192.168.1.1");
  EXPECT_EQ(order_addresses(all, {"172.17.0.1"}, {}).front(), "172.17.0.1");
  EXPECT_EQ(order_addresses(all, {"192.168.1.1"}, {{"eth0"}, true}),
            (Texts{"10.0.0.1", "2001:db8::1"}));
  EXPECT_EQ(order_addresses(all, {}, {{"eth7"}, true}), Texts());
}

TEST(Addresses, OfTheLauncher) {
  EXPECT_EQ(launcher_hosts({{"OMPI_MCA_orte_hnp_uri",
                             "123.0;tcp://10.0.0.1,192.168.1.1:4000;tcp6://[fe80::1]:4001"},
                            {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"}}),
            (Texts{"10.0.0.1", "192.168.1.1", "10.0.0.9"}));
  EXPECT_EQ(launcher_hosts({{"OMPI_MCA_orte_hnp_uri", "nonsense"}}), Texts());
}

// A name may have IPv6 only.
TEST(Addresses, AServerThatOthersReachByANameListensOnAll) {
  EXPECT_EQ(listen_host("node1"), kAllAddresses);
  EXPECT_EQ(listen_host("10.0.0.1"), kAllAddresses);
  EXPECT_EQ(listen_host("fd00::1"), kAllAddresses);
  EXPECT_EQ(listen_host("localhost"), "127.0.0.1");
  EXPECT_EQ(listen_host("::1"), "::1");
  EXPECT_EQ(listen_host("127.0.1.1"), "127.0.1.1");  // `hostname -i` on Debian
}

TEST(Addresses, AHostReachesItsOwnServerWhereThatListens) {
  EXPECT_EQ(host_for_itself("node1"), "127.0.0.1");
  EXPECT_EQ(host_for_itself("fd00::1"), "127.0.0.1");
  EXPECT_EQ(host_for_itself("localhost"), "127.0.0.1");
  EXPECT_EQ(host_for_itself("127.0.1.1"), "127.0.1.1");
  EXPECT_EQ(host_for_itself("::1"), "::1");
}

TEST(Addresses, InterfacesAreNamedAsHcclNamesThem) {
  const auto taken = [](const std::string& text) {
    Texts names;
    for (const char* each : {"eth0", "eth01", "enp3", "ib0"})
      if (parse_interface_rule(text).takes(each)) names.emplace_back(each);
    return names;
  };
  EXPECT_EQ(taken("eth,enp"), (Texts{"eth0", "eth01", "enp3"}));
  EXPECT_EQ(taken("^eth"), (Texts{"enp3", "ib0"}));
  EXPECT_EQ(taken("=eth0,ib0"), (Texts{"eth0", "ib0"}));
  EXPECT_EQ(taken("^=eth0,ib0"), (Texts{"eth01", "enp3"}));
  EXPECT_EQ(taken("=eth"), Texts());
  EXPECT_EQ(taken(""), (Texts{"eth0", "eth01", "enp3", "ib0"}));
}

TEST(Addresses, LoopbackCountsWhereItIsNamed) {
  const std::vector<InterfaceAddress> all = {{"lo", "127.0.0.1"}, {"eth0", "10.0.0.1"}};
  EXPECT_EQ(order_addresses(all, {}, parse_interface_rule("lo")), Texts{"127.0.0.1"});
  EXPECT_EQ(order_addresses(all, {}, parse_interface_rule("^ib")), Texts{"10.0.0.1"});
}

TEST(Addresses, OwnVariablesComeBeforeHccls) {
  Environment variables = {{"HCCL_SOCKET_IFNAME", "^docker"}};
  EXPECT_EQ(wished_address(variables).interfaces, parse_interface_rule("^docker"));
  variables["HCCL_IF_IP"] = "10.0.0.1";
  EXPECT_EQ(wished_address(variables).address, "10.0.0.1");
  variables["LOCKSTEP_IFNAME"] = "ib0";
  EXPECT_EQ(wished_address(variables).interfaces, (InterfaceRule{{"ib0"}, true, false}));
  variables["LOCKSTEP_ADDRESS"] = "host7";
  EXPECT_EQ(wished_address(variables).address, "host7");
  EXPECT_EQ(wished_address({{"HCCL_IF_IP", ""}}).variable, "");
}

TEST(Addresses, HcclsMustBeThisHosts) {
  EXPECT_EQ(own_addresses({{"HCCL_IF_IP", "127.0.0.1"}}, {}), Texts{"127.0.0.1"});
  EXPECT_EQ(own_addresses({{"HCCL_SOCKET_IFNAME", "=lo"}}, {}).front(), "127.0.0.1");
  const auto message = [](const Environment& variables) -> std::string {
    try {
      own_addresses(variables, {});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message({{"HCCL_IF_IP", "192.0.2.7"}}),
              testing::HasSubstr("HCCL_IF_IP: 192.0.2.7 is not an address of this host"));
  EXPECT_THAT(message({{"HCCL_SOCKET_IFNAME", "nothing"}}),
              testing::HasSubstr("HCCL_SOCKET_IFNAME: 'nothing' names no interface"));
}

TEST(Addresses, GivenOneIsTheOnlyOne) {
  EXPECT_EQ(own_addresses({{"LOCKSTEP_ADDRESS", "host7"}}, {}), Texts{"host7"});
}

}  // namespace
}  // namespace lockstep
