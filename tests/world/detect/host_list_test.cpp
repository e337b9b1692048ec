#include "lockstep/world/detect/host_list.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

struct HostListCase {
  const char* list;
  const char* hosts;  ///< Joined by blanks.
};

TEST(HostList, ExpandsAsSlurmDoes) {
  const HostListCase cases[] = {
      {"gpu[01-03,7],login2", "gpu01 gpu02 gpu03 gpu7 login2"},
      {"node1", "node1"},
      {"a[1-3]", "a1 a2 a3"},
      {"a[01-3]", "a01 a02 a03"},
      {"a[1-03]", "a1 a2 a3"},
      {"a[9-11]", "a9 a10 a11"},
      {"a[09-11]", "a09 a10 a11"},
      {"a[099-101]", "a099 a100 a101"},
      {"a[98-101]", "a98 a99 a100 a101"},
      {"a[1,3,5-7]", "a1 a3 a5 a6 a7"},
      {"a[01,1,001]", "a01 a1 a001"},
      {"cn[0001-0003,0010]", "cn0001 cn0002 cn0003 cn0010"},
      {"h[007-010]", "h007 h008 h009 h010"},
      {"r[1-2]n[01-02]", "r1n01 r1n02 r2n01 r2n02"},
      {"rack[0-1]-node[00-01,5]",
       "rack0-node00 rack0-node01 rack0-node5 rack1-node00 rack1-node01 rack1-node5"},
      {"a[1-2][3-4]", "a13 a14 a23 a24"},
      {"n[1-2]n[3-4]n[5-6]", "n1n3n5 n1n3n6 n2n3n5 n2n3n6 n1n4n5 n1n4n6 n2n4n5 n2n4n6"},
      {"[1-3]", "1 2 3"},
      {"10.0.0.[1-3]", "10.0.0.1 10.0.0.2 10.0.0.3"},
      {"b2,a1,b1", "b2 a1 b1"},
      {"a[1-2],a[2-3]", "a1 a2 a2 a3"},
      {"a1,a1", "a1 a1"},
      {"a1,,a2", "a1 a2"},
      {",a1,", "a1"},
      {"a1 a2", "a1 a2"},
      {"a1 ,a2", "a1 a2"},
      {"a[1-2], b3", "a1 a2 b3"},
      {"a[1-]", "a1"},
      {"a1]", "a1]"},
      {"a[18446744073709551615]", "a18446744073709551615"},
      {"", ""},
      // Older Slurm refuses text after the last bracket.
      {"a[1-2]-ib0", "a1-ib0 a2-ib0"},
      {"a[1-2].cluster.local", "a1.cluster.local a2.cluster.local"},
      {"gpu-node-[01-02]-a100", "gpu-node-01-a100 gpu-node-02-a100"},
      {"node-a[1-2]x[5,7]y", "node-a1x5y node-a1x7y node-a2x5y node-a2x7y"},
      {"a1\ta2\nb1", "a1 a2 b1"},
      {"gpu[7,01-02]", "gpu7 gpu01 gpu02"},
  };
  for (const HostListCase& c : cases)
    EXPECT_EQ(fmt::format("{}", fmt::join(expand_host_list(c.list), " ")), c.hosts) << c.list;
}

TEST(HostList, RefusesWhatIsNoListAndSaysWhy) {
  const HostListCase cases[] = {
      {"a[3-1]", "backwards"},
      {"a[]", "not a number"},
      {"a[-3]", "not a number"},
      {"a[x-z]", "not a number"},
      {"tux[0x1-0x3]", "not a number"},
      {"a[1-100000]", "more than 65536"},
      {"a[1", "without ']'"},
      {"a[1,2", "without ']'"},
      {"a[1 - 3]", "not a number"},
      {"a[1-300]b[1-300]", "more than 65536"},
      {"b1,a[[1]]", "not a number"},
      {"a[18446744073709551616]", "not a number"},
      {"a[1-65537]", "more than 65536"},
  };
  for (const HostListCase& c : cases) {
    const Error error = error_of([&] { expand_host_list(c.list); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find(c.hosts), std::string::npos) << error.what();
  }
}

TEST(HostList, MemoryIsBounded) {
  EXPECT_EQ(expand_host_list("a[1-65536]").size(), 65536U);
  const std::string list = std::string(2000, 'x') + "[1-65536]";
  EXPECT_EQ(error_of([&] { expand_host_list(list); }).code(), ErrorCode::kInvalidArgument);
  const std::string wide = "a[" + std::string(1000, '0') + "1]";
  EXPECT_EQ(error_of([&] { expand_host_list(wide); }).code(), ErrorCode::kInvalidArgument);
}

TEST(TasksPerNode, RepeatsAreExpanded) {
  EXPECT_EQ(parse_tasks_per_node("2(x3),1"), (std::vector{2, 2, 2, 1}));
  EXPECT_EQ(parse_tasks_per_node("4"), std::vector{4});
  EXPECT_EQ(parse_tasks_per_node("1,3,1"), (std::vector{1, 3, 1}));
  for (const char* bad : {"", "2(3)", "2(x3", "x", "2(x0)", "1,,2", "2(x70000)", "2(x3)4", "0"})
    EXPECT_EQ(error_of([&] { parse_tasks_per_node(bad); }).code(), ErrorCode::kInvalidArgument)
        << bad;
}

}  // namespace
}  // namespace lockstep
