#include "lockstep/launch/addresses.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Texts = std::vector<std::string>;

TEST(Addresses, ThoseThatOthersReachComeFirst) {
  const std::vector<InterfaceAddress> all = {
      {"lo", "127.0.0.1"},     {"docker0", "172.17.0.1"}, {"eth0", "fe80::1"},
      {"eth0", "2001:db8::1"}, {"eth0", "10.0.0.1"},      {"ib0", "192.168.1.1"},
      {"eth2", "169.254.3.4"},
  };
  EXPECT_EQ(order_addresses(all, {}, ""),
            (Texts{"10.0.0.1", "192.168.1.1", "2001:db8::1", "172.17.0.1"}));
  EXPECT_EQ(order_addresses(all, {"192.168.1.1"}, "").front(), "192.168.1.1");
  EXPECT_EQ(order_addresses(all, {"172.17.0.1"}, "").front(), "172.17.0.1");
  EXPECT_EQ(order_addresses(all, {"192.168.1.1"}, "eth0"), (Texts{"10.0.0.1", "2001:db8::1"}));
  EXPECT_EQ(order_addresses(all, {}, "eth7"), Texts());
}

TEST(Addresses, OfTheLauncher) {
  EXPECT_EQ(launcher_hosts({{"OMPI_MCA_orte_hnp_uri",
                             "123.0;tcp://10.0.0.1,192.168.1.1:4000;tcp6://[fe80::1]:4001"},
                            {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"}}),
            (Texts{"10.0.0.1", "192.168.1.1", "10.0.0.9"}));
  EXPECT_EQ(launcher_hosts({{"OMPI_MCA_orte_hnp_uri", "nonsense"}}), Texts());
}

TEST(Addresses, GivenOneIsTheOnlyOne) {
  EXPECT_EQ(own_addresses({{"LOCKSTEP_ADDRESS", "host7"}}, {}), Texts{"host7"});
}

}  // namespace
}  // namespace lockstep
