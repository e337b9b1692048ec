// Resources of a host or a container: processor time and accelerators.

#include "lockstep/launch/job/host_resources.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/file.h"
#include "lockstep/world/cores.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// A root with these files.
class FakeRoot {
 public:
  FakeRoot(std::initializer_list<std::pair<const char*, const char*>> files) {
    for (const auto& [name, text] : files) {
      const fs::path path = folder_ / name;
      fs::create_directories(path.parent_path());
      write_file_atomically(path, text);
    }
  }
  std::string path() const { return (folder_ / "").string(); }

 private:
  TempFolder folder_;
};

int accelerators(std::initializer_list<std::pair<const char*, const char*>> files) {
  return count_accelerators(FakeRoot(files).path());
}

TEST(HostResources, AcceleratorsAreCountedWhateverTheirNumbers) {
  EXPECT_EQ(accelerators({{"dev/null", ""}}), 0);
  EXPECT_EQ(accelerators({{"dev/nvidia0", ""}, {"dev/nvidia1", ""}, {"dev/nvidiactl", ""}}), 2);
  // A container with the last two devices of a host.
  EXPECT_EQ(accelerators({{"dev/nvidia2", ""}, {"dev/nvidia3", ""}, {"dev/nvidia-uvm", ""}}), 2);
  EXPECT_EQ(accelerators({{"proc/driver/nvidia/gpus/0000:01:00.0/information", ""}}), 1);
  EXPECT_EQ(accelerators({{"dev/davinci4", ""}, {"dev/davinci5", ""}, {"dev/davinci_manager", ""}}),
            2);
}

TEST(HostResources, OfAmdWhatComputesIsCounted) {
  const std::pair<const char*, const char*> node = {"dev/dri/renderD129", ""};
  const std::pair<const char*, const char*> amd = {"sys/class/drm/renderD129/device/vendor",
                                                   "0x1002\n"};
  EXPECT_EQ(accelerators({{"dev/kfd", ""}, node, amd}), 1);
  EXPECT_EQ(accelerators({node, amd}), 0) << "a screen's, without a driver that computes";
  EXPECT_EQ(accelerators({{"dev/kfd", ""},
                          {"dev/dri/renderD128", ""},
                          {"sys/class/drm/renderD128/device/vendor", "0x8086\n"},
                          node,
                          amd}),
            1);
}

TEST(CpuQuota, LimitsTheCoresOfAHost) {
  EXPECT_EQ(cores_of_host(FakeRoot({{"proc/self/cgroup", "0::/\n"}}).path()), online_cpus());
  EXPECT_EQ(cores_of_host(FakeRoot({{"proc/self/cgroup", "0::/\n"},
                                    {"sys/fs/cgroup/cpu.max", "100000 100000\n"}})
                              .path()),
            1);
}

TEST(CpuQuota, IsTheLeastOfTheGroupsAround) {
  EXPECT_EQ(cpu_quota(FakeRoot({{"proc/self/cgroup", "0::/\n"}}).path()), 0);
  EXPECT_EQ(cpu_quota(FakeRoot({{"proc/self/cgroup", "0::/\n"},
                                {"sys/fs/cgroup/cpu.max", "400000 100000\n"}})
                          .path()),
            4);
  EXPECT_EQ(cpu_quota(FakeRoot({{"proc/self/cgroup", "0::/job/step/task\n"},
                                {"sys/fs/cgroup/job/cpu.max", "250000 100000\n"},
                                {"sys/fs/cgroup/job/step/cpu.max", "800000 100000\n"},
                                {"sys/fs/cgroup/job/step/task/cpu.max", "max 100000\n"}})
                          .path()),
            2.5);
}

TEST(CpuQuota, OfVersionOne) {
  const char* const groups = "5:memory:/a\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/a\n";
  EXPECT_EQ(cpu_quota(FakeRoot({{"proc/self/cgroup", groups},
                                {"sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "150000"},
                                {"sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "50000"}})
                          .path()),
            3);
  // Inside the container its group is the root of the mounted hierarchy.
  EXPECT_EQ(cpu_quota(FakeRoot({{"proc/self/cgroup", groups},
                                {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000"},
                                {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"}})
                          .path()),
            2);
  EXPECT_EQ(cpu_quota(FakeRoot({{"proc/self/cgroup", groups},
                                {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"},
                                {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"}})
                          .path()),
            0);
}

}  // namespace
}  // namespace lockstep
