#include "lockstep/launch/job/host_resources.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

using Ids = std::vector<int>;
using IdsOfRanks = std::vector<Ids>;

/// Two sockets with two nodes each, four cores a node, two threads a core; two cores share a cache.
/// Node n has cores 4n to 4n+3; their second threads have numbers higher by 16.
CpuTopology large_host() {
  CpuTopology topology;
  for (int id = 0; id < 32; ++id) {
    const int core = id % 16;
    topology.cpus.push_back({id, core, core / 2 * 2, core / 4, core / 8});
  }
  return topology;
}

TEST(CpuList, AsTheKernelWritesIt) {
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11\n"), (Ids{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list(""), Ids{});
  EXPECT_EQ(parse_cpu_list("x"), Ids{});
  EXPECT_EQ(parse_cpu_list("0-999999999"), Ids{}) << "more than any host has";
  EXPECT_EQ(cpu_list({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(cpu_list({}), "");
  EXPECT_EQ(cpu_mask({0, 3, 64}), (std::vector<unsigned long>{9, 1}));
}

TEST(CoreBinding, NodesAreThoseOfTheGpus) {
  auto host = large_host();
  host.gpu_nodes = {3, 3, 0, 1};
  const auto bound = cpus_of_ranks(host, CoreBinding::kNode, 4);
  EXPECT_EQ(cpu_list(bound[0]), "12-15,28-31");
  EXPECT_EQ(bound[0], bound[1]);
  EXPECT_EQ(cpu_list(bound[2]), "0-3,16-19");
  EXPECT_EQ(cpu_list(bound[3]), "4-7,20-23");
}

TEST(CoreBinding, WithoutAGpuForEachRankNodesAreDealtOutInOrder) {
  auto host = large_host();
  host.gpu_nodes = {3};
  const auto bound = cpus_of_ranks(host, CoreBinding::kNode, 6);
  Ids first;
  for (const Ids& ids : bound) first.push_back(ids[0]);
  EXPECT_EQ(first, (Ids{0, 0, 4, 8, 8, 12}));
  EXPECT_EQ(cpu_list(cpus_of_ranks(host, CoreBinding::kNode, 2)[1]), "8-11,24-27");
}

TEST(CoreBinding, ASocketIsAllItsNodes) {
  auto host = large_host();
  host.gpu_nodes = {2, 1};
  const auto bound = cpus_of_ranks(host, CoreBinding::kSocket, 2);
  EXPECT_EQ(cpu_list(bound[0]), "8-15,24-31");
  EXPECT_EQ(cpu_list(bound[1]), "0-7,16-23");
}

TEST(CoreBinding, ExclusiveSharesAreWholeCoresAndTheFirstGetWhatIsOver) {
  auto host = large_host();
  host.gpu_nodes = {1, 0, 1, 1};
  const auto bound = cpus_of_ranks(host, CoreBinding::kExclusive, 4);
  EXPECT_EQ(cpu_list(bound[0]), "4-5,20-21");
  EXPECT_EQ(cpu_list(bound[1]), "0-3,16-19");
  EXPECT_EQ(cpu_list(bound[2]), "6,22");
  EXPECT_EQ(cpu_list(bound[3]), "7,23");
  std::set<int> all;
  size_t count = 0;
  for (const Ids& ids : cpus_of_ranks(large_host(), CoreBinding::kExclusive, 16)) {
    all.insert(ids.begin(), ids.end());
    count += ids.size();
  }
  EXPECT_EQ(all.size(), 32U);
  EXPECT_EQ(count, 32U) << "and none twice";
}

TEST(CoreBinding, ACacheForEachRankWhileThereAreSome) {
  auto host = large_host();
  host.gpu_nodes = {2, 2, 2};
  const auto bound = cpus_of_ranks(host, CoreBinding::kCoreComplex, 3);
  EXPECT_EQ(cpu_list(bound[0]), "8-9,24-25");
  EXPECT_EQ(cpu_list(bound[1]), "10-11,26-27");
  EXPECT_EQ(bound[2], bound[0]);
}

TEST(CoreBinding, WhatCannotBeIsSaid) {
  auto host = large_host();
  EXPECT_TRUE(cpus_of_ranks(host, CoreBinding::kNone, 4).empty());
  const auto said = [&](CoreBinding binding, int ranks) {
    const Error error = error_of([&] { cpus_of_ranks(host, binding, ranks); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  EXPECT_NE(said(CoreBinding::kExclusive, 17).find("has 4 cores for 5 ranks"), std::string::npos);
  host.gpu_nodes = {9};
  EXPECT_NE(said(CoreBinding::kNode, 1).find("no CPU of NUMA node 9"), std::string::npos);
}

/// A host's /sys and /proc, as far as they are read.
class MadeHost {
 public:
  void put(const std::string& path, const std::string& text) const {
    const auto file = folder_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  CpuTopology read(const Ids& usable, const Environment& environment = {}) const {
    return read_cpu_topology(folder_.path().string(), usable, environment);
  }

 private:
  TempFolder folder_;
};

TEST(CpuTopology, IsReadFromTheKernelsFiles) {
  const MadeHost host;
  for (const int id : {0, 1, 2, 3}) {
    const std::string cpu = "sys/devices/system/cpu/cpu" + std::to_string(id);
    host.put(cpu + "/topology/thread_siblings_list", id % 2 == 0 ? "0,2" : "1,3");
    host.put(cpu + "/topology/physical_package_id", std::to_string(id % 2));
    host.put(cpu + "/cache/index3/shared_cpu_list", id % 2 == 0 ? "0,2" : "1,3");
  }
  host.put("sys/devices/system/node/node0/cpulist", "0,2");
  host.put("sys/devices/system/node/node1/cpulist", "1,3");
  host.put("sys/devices/system/node/possible", "0-1");
  for (const char* gpu : {"0000:3B:00.0", "0000:86:00.0"}) {
    host.put(std::string("proc/driver/nvidia/gpus/") + gpu + "/information", "");
  }
  host.put("sys/bus/pci/devices/0000:3b:00.0/numa_node", "1");
  host.put("sys/bus/pci/devices/0000:86:00.0/numa_node", "0");
  const auto read = host.read({0, 1, 3});
  ASSERT_EQ(read.cpus.size(), 3U) << "only what may be used";
  EXPECT_EQ(read.cpus[2].id, 3);
  EXPECT_EQ(read.cpus[2].core, 1);
  EXPECT_EQ(read.cpus[2].cache, 1);
  EXPECT_EQ(read.cpus[2].node, 1);
  EXPECT_EQ(read.cpus[2].socket, 1);
  EXPECT_EQ(read.gpu_nodes, (Ids{1, 0}));
  EXPECT_EQ(host.read({0}, {{"CUDA_VISIBLE_DEVICES", "1"}}).gpu_nodes, Ids{0});
  EXPECT_EQ(host.read({0}, {{"CUDA_VISIBLE_DEVICES", "GPU-ab"}}).gpu_nodes, (Ids{1, 0}));
}

TEST(CpuTopology, WhatTheKernelDoesNotSayIsOneNode) {
  const auto read = MadeHost().read({4, 5});
  ASSERT_EQ(read.cpus.size(), 2U);
  EXPECT_EQ(read.cpus[1].core, 5);
  EXPECT_EQ(read.cpus[1].cache, 4);
  EXPECT_EQ(read.cpus[1].node, 0);
  EXPECT_TRUE(read.gpu_nodes.empty());
}

TEST(CpuTopology, ThisProcessHasSomeCpus) {
  const auto cpus = usable_cpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_TRUE(bind_to(cpu_mask(cpus)));
  EXPECT_EQ(usable_cpus(), cpus);
}

}  // namespace
}  // namespace lockstep
