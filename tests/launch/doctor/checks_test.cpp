// The doctor's evaluation of facts, row by row.

#include "lockstep/launch/doctor/checks.h"

#include <gtest/gtest.h>

#include "tests/launch/doctor/hosts.h"

namespace lockstep::doctor {
namespace {

using lockstep::testing::complaints;
using lockstep::testing::sound_hosts;

/// Complaints about three sound hosts after `change`.
template <class Change>
std::string after(const Change& change) {
  Findings all = sound_hosts(3);
  change(all);
  return complaints(evaluate(all));
}

TEST(DoctorChecks, SoundHostsPass) {
  for (const int num : {1, 2, 16}) EXPECT_EQ(complaints(evaluate(sound_hosts(num))), "") << num;
}

TEST(DoctorChecks, HostThatDoesNotAnswerNamesTheCommand) {
  Findings all = sound_hosts(3);
  all.hosts[2].problem = "the command ended with exit code 255: ssh: no route to host";
  const auto rows = evaluate(all);
  EXPECT_EQ(rows[0].result, CheckResult::kFail);
  EXPECT_EQ(rows[0].text, "h3: the command ended with exit code 255: ssh: no route to host");
  EXPECT_EQ(rows[0].mend, "run by hand: ssh h3 lockstep doctor --probe");
  all.hosts.erase(all.hosts.begin(), all.hosts.begin() + 2);
  EXPECT_EQ(evaluate(all).size(), 1U) << "nothing is evaluated of hosts that gave no facts";
}

TEST(DoctorChecks, WhatMustBeEqual) {
  EXPECT_EQ(after([](Findings& all) { all.hosts[1].facts.build_id = "lockstep 0.2.0"; }),
            "fail lockstep: lockstep 0.1.0 on h1, h3; lockstep 0.2.0 on h2; two builds refuse each "
            "other at their first hello\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[1].facts.libtorch = "2.1.0"; }),
            "fail libtorch: 1.13.1 on h1, h3; 2.1.0 on h2\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[1].facts.libtorch = ""; }),
            "fail libtorch: 1.13.1 on h1, h3; none on h2\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[2].facts.libtorch_isa = "AVX512"; }),
            "warn instruction set: AVX2 on h1, h2; AVX512 on h3; results will not have the same "
            "bits on every host\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[2].facts.host_id = "id1"; }),
            "warn machines: h1, h3 are one machine\n");
}

TEST(DoctorChecks, Names) {
  EXPECT_EQ(after([](Findings& all) {
              all.hosts[0].facts.names[1] = {"h2", {}, "Name or service not known", 0};
            }),
            "fail names: h1: cannot resolve 'h2': Name or service not known\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[0].facts.names[1].addresses = {"127.0.1.1"}; }),
            "fail names: h1: 'h2' is 127.0.1.1, which is the host itself\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[1].facts.names[1].addresses = {"127.0.1.1"}; }),
            "warn names: h2: its own name 'h2' is 127.0.1.1; a program that tells others this "
            "address cannot be reached\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[1].facts.names[0].addresses = {"10.9.9.9"}; }),
            "warn names: h2: 'h1' is 10.9.9.9, which is no address of that host (10.0.0.1)\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[1].facts.names[0].seconds = 5; }),
            "warn names: h2: resolving 'h1' took 5.0 s\n");
  Findings alone = sound_hosts(1);
  alone.hosts[0].facts.names[0].addresses = {"127.0.1.1"};
  EXPECT_EQ(complaints(evaluate(alone)), "") << "one host reaches itself by loopback";
}

TEST(DoctorChecks, PortsThatAreTaken) {
  const auto taken = [](size_t host) {
    return after([&](Findings& all) {
      all.hosts[host].facts.ports[0] = {29500, 0, "port 29500 is already in use"};
    });
  };
  EXPECT_EQ(taken(0), "fail ports: h1: port 29500 is already in use\n");
  EXPECT_EQ(taken(1), "warn ports: h2: port 29500 is already in use\n");
}

TEST(DoctorChecks, LinksOneWayOnePortAndAltogether) {
  EXPECT_EQ(after([](Findings& all) {
              for (auto& link : all.links) {
                if (link.to == 1 && link.port == 29500) link.problem = "no answer";
              }
            }),
            "fail links: h2 from h1, h3: port 29500: no answer\n");
  EXPECT_EQ(after([](Findings& all) { all.links[0].problem = "leads to h1"; }),
            "fail links: h2 from h1: port 29500: leads to h1\n");
  EXPECT_EQ(after([](Findings& all) {
              for (auto& link : all.links) {
                if (link.to == 2 || link.from == 2) link.problem = "no answer";
              }
            }),
            "fail links: h3 is out of reach of every other host: no answer\n");
  EXPECT_EQ(after([](Findings& all) {
              for (auto& link : all.links) {
                if (link.from + link.to == 1) link.problem = "no answer";
              }
            }),
            "fail links: h1 from h2: port 29500, a port of the kernel's choice: no answer\n"
            "fail links: h2 from h1: port 29500, a port of the kernel's choice: no answer\n");
}

TEST(DoctorChecks, Firewalls) {
  EXPECT_EQ(after([](Findings& all) {
              all.hosts[0].facts.firewalls = {{"ufw", FirewallState::kOn, "it is active", ""}};
            }),
            "warn firewall: h1: ufw blocks: it is active\n");
  Findings all = sound_hosts(2);
  all.hosts[0].facts.firewalls = {{"nft", FirewallState::kUnknown, "Operation not permitted", ""}};
  EXPECT_EQ(check_firewalls(all.hosts)[0].text, "none seen (reading nft takes root)");
}

TEST(DoctorChecks, ClocksLessWhatTheMeasurementIsOff) {
  const auto skew = [](double offset, double error) {
    return after([&](Findings& all) {
      all.hosts[1].clock_offset_s = offset;
      all.hosts[1].clock_error_s = error;
    });
  };
  EXPECT_EQ(skew(0.4, 0), "");
  EXPECT_EQ(skew(3, 2.8), "");
  EXPECT_EQ(skew(-3, 0.1), "warn clocks: h2: 3.0 s behind\n");
  EXPECT_EQ(skew(3600, 0.1), "fail clocks: h2: 3600.0 s ahead\n");
}

TEST(DoctorChecks, HostsThatAreBusyWithSomethingElse) {
  const auto busy = [](double pressure, double load) {
    return after([&](Findings& all) {
      all.hosts[1].facts.cpu_pressure = pressure;
      all.hosts[1].facts.load = load;
      all.hosts[1].facts.cores = 4;
    });
  };
  EXPECT_EQ(busy(19, 30), "");
  EXPECT_EQ(busy(35, 9),
            "warn load: h2: busy: processes wait for a core 35 % of the time (load 9.0 on 4 "
            "cores)\n");
  EXPECT_EQ(busy(-1, 5.9), "");
  EXPECT_EQ(busy(-1, 6), "warn load: h2: busy: load 6.0 on 4 cores\n");
  EXPECT_EQ(busy(-1, -1), "") << "unknown";
}

TEST(DoctorChecks, KernelSettings) {
  EXPECT_EQ(after([](Findings& all) { all.hosts[0].facts.somaxconn = 128; }),
            "warn backlogs: h1: net.core.somaxconn is 128, below 1024: connections can fail at "
            "random when all start at once\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[0].facts.syn_backlog = 256; }),
            "warn backlogs: h1: net.ipv4.tcp_max_syn_backlog is 256, below 1024: connections can "
            "fail at random when all start at once\n");
  const std::vector<HostFinding> many(2000, sound_hosts(1).hosts[0]);
  EXPECT_NE(complaints(check_backlogs(many))
                .find("all 2000 hosts: net.core.somaxconn is 4096, "
                      "below 65535"),
            std::string::npos);
  EXPECT_EQ(after([](Findings& all) { all.hosts[0].facts.open_files = 512; }),
            "warn open files: h1: 512 descriptors a process are few\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[0].facts.open_files = 64; }),
            "fail open files: h1: 64 descriptors a process are few\n");
}

TEST(DoctorChecks, ReservedPortsWhereThereAreDevices) {
  const auto ports = [](const std::string& reserved, const std::string& base) {
    return after([&](Findings& all) {
      for (auto& host : all.hosts) {
        host.facts.hccl_base_port = base;
        host.facts.reserved_ports = reserved;
      }
    });
  };
  EXPECT_EQ(ports("", ""), "") << "no devices, no ports of theirs";
  EXPECT_EQ(ports("60000-60015", "60000"), "");
  EXPECT_EQ(ports("60000-60007,60008-60020", "60000"), "");
  EXPECT_EQ(ports("60000-60014", "60000"),
            "warn reserved ports: all 3 hosts: HCCL's ports 60000-60015 can be taken by any "
            "connection of the host\n");
  EXPECT_EQ(ports("60000-60015", "50000"),
            "warn reserved ports: all 3 hosts: HCCL's ports 50000-50015 can be taken by any "
            "connection of the host\n");
  EXPECT_EQ(ports("", "20000"), "") << "not of the kernel's range";
  for (const char* wrong : {"abc", "1023", "65521", "60000x"}) {
    EXPECT_EQ(ports("60000-60015", wrong), std::string("fail reserved ports: all 3 hosts: "
                                                       "HCCL_IF_BASE_PORT=") +
                                               wrong + " is no port from 1024 to 65520\n");
  }
  EXPECT_EQ(after([](Findings& all) {
              all.hosts[1].facts.ports[0] = {40001, 40001, ""};
            }),
            "warn reserved ports: h2: port 40001 can be taken by any connection of the host\n");
  Findings ascend = sound_hosts(1);
  ascend.hosts[0].facts.hccl_base_port = "60000";
  ascend.hosts[0].facts.reserved_ports = "7000";
  for (int port = 60000; port < 60016; ++port)
    ascend.hosts[0].facts.ports.push_back({port, port, ""});
  ascend.hosts[0].facts.ports.push_back({40001, 40001, ""});
  const auto rows = check_reserved_ports(ascend);
  ASSERT_EQ(rows.size(), 1U) << "a second command would undo the first";
  EXPECT_EQ(rows[0].mend, "sudo sysctl -w net.ipv4.ip_local_reserved_ports=7000,60000-60015,40001");
  EXPECT_TRUE(covers_ports("1,2-4,5", 1, 5));
  EXPECT_FALSE(covers_ports("1,3", 1, 3));
  EXPECT_FALSE(covers_ports("", 1, 1));
}

TEST(DoctorChecks, PortsThatAreTriedWhereNoneAreNamed) {
  EXPECT_EQ(ports_of_job(false, "50000"), "29500,0");
  EXPECT_EQ(ports_of_job(true, ""), "29500,60000-60015,0");
  EXPECT_EQ(ports_of_job(true, "50000"), "29500,50000-50015,0");
  EXPECT_EQ(ports_of_job(true, "abc"), "29500,0") << "what is wrong with it is a row of its own";
}

TEST(DoctorChecks, MemoryDisksAndCores) {
  EXPECT_EQ(after([](Findings& all) { all.hosts[0].facts.shm_bytes = 64 << 20; }),
            "warn /dev/shm: h1: 64.0 MiB is little for PyTorch's data loaders (lockstep itself "
            "needs none)\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[0].facts.disks[0].free_bytes = 1 << 20; }),
            "fail disks: h1: /work has 1.0 MiB free\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[0].facts.disks[0].error = "not writable"; }),
            "fail disks: h1: /work: not writable\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[2].facts.usable_cores = 4; }),
            "warn cores: h3: bound to 4 of 64 cores\n");
  EXPECT_EQ(after([](Findings& all) { all.hosts[2].facts.cpu_quota = 1.5; }),
            "warn cores: h3: the control group gives 1.5 of 64 cores\n");
}

TEST(DoctorChecks, SlowPairsAndHosts) {
  EXPECT_EQ(after([](Findings& all) { all.speeds[0].gbit_s = 0.9; }),
            "warn speed: h1 to h2: 0.90 Gbit/s, 20 us; good pairs have 9.40 Gbit/s and 20 us\n");
  EXPECT_EQ(after([](Findings& all) { all.speeds[0].latency_us = 900; }),
            "warn speed: h1 to h2: 9.40 Gbit/s, 900 us; good pairs have 9.40 Gbit/s and 20 us\n");
  EXPECT_EQ(after([](Findings& all) {
              for (auto& pair : all.speeds) {
                if (pair.from == 2 || pair.to == 2) pair.gbit_s = 0.9;
              }
            }),
            "warn speed: h3: slow with every other host; good pairs have 9.40 Gbit/s and 20 us\n");
  EXPECT_EQ(after([](Findings& all) { all.speeds[5].problem = "reset"; }),
            "warn speed: h3 to h2: reset\n");
}

TEST(DoctorChecks, DeviceAddressesOfBothGenerations) {
  const auto set = [](Findings& all, bool a2) {
    for (int i = 0; i < 3; ++i) {
      auto& facts = all.hosts[static_cast<size_t>(i)].facts;
      facts.reserved_ports = "60000-60015";
      for (int id = 0; id < 8; ++id) {
        facts.device_addresses[std::to_string(id)] =
            a2 ? fmt::format("10.1.1.{}", 8 * i + id + 1)
               : fmt::format("192.{}.27.{}", id % 4 + 1, 6 + 2 * i + id / 4);
      }
    }
  };
  Findings training = sound_hosts(3);
  set(training, false);
  EXPECT_EQ(complaints(evaluate(training)), "");
  EXPECT_EQ(check_devices(training)[0].text, "24 devices, as Atlas training series has them");
  Findings a2 = sound_hosts(3);
  set(a2, true);
  EXPECT_EQ(check_devices(a2)[0].text, "24 devices, as Atlas A2 has them");
  a2.hosts[2].facts.device_addresses["7"] = "10.1.2.1";
  a2.hosts[1].facts.device_addresses["0"] = "10.1.1.1";
  const auto rows = check_devices(a2);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NE(rows[0].text.find("\"10.1.1.1\" is also that of"), std::string::npos);
  EXPECT_NE(rows[1].text.find("Atlas A2: 10.1.2.1 and 10.1.1.1"), std::string::npos);
  EXPECT_EQ(
      after([](Findings& all) { all.hosts[0].facts.device_links["3"] = "link status: DOWN"; }),
      "fail device links: h1: device 3: link status: DOWN\n");
  a2 = sound_hosts(3);
  set(a2, true);
  a2.hosts[2].facts.device_links["3"] = "net health status: Init";
  a2.hosts[0].facts.devices_without_switch = {"0", "1"};
  const auto links = check_devices(a2);
  ASSERT_EQ(links.size(), 3U);
  EXPECT_EQ(links[1].text, "h1: devices 0, 1 see no switch");
  EXPECT_EQ(links[1].result, CheckResult::kWarn);
  EXPECT_TRUE(links[1].mend.starts_with("hccn_tool -i 0 -lldp -g; ")) << links[1].mend;
  EXPECT_NE(links[2].mend.find("; hccn_tool -i 3 -netdetect -s address " +
                               a2.hosts[0].facts.device_addresses["3"] + "; "),
            std::string::npos)
      << links[2].mend;
}

}  // namespace
}  // namespace lockstep::doctor
