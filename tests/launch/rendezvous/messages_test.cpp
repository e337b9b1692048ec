// Messages between agents, and their refusal if invalid.

#include <gtest/gtest.h>

#include "lockstep/launch/rendezvous/generation.h"
#include "lockstep/launch/rendezvous/messages.h"
#include "tests/support/error_of.h"

namespace lockstep::testing {
namespace {

JoinRequest some_request() {
  JoinRequest request;
  request.host = "host \"1\"";
  request.address = "fe80::1";
  request.store_port = 1;
  request.torch_port = 65535;
  request.takeover_port = 3;
  request.local_size = 8;
  request.role = "trainer";
  request.program = "train.py";
  request.mark = secret_mark("secret");
  request.command = "c0ffee";
  request.folder = "f01de4";
  request.host_id = "boot/net";
  request.named = true;
  request.node_rank = 3;
  request.min_nodes = 2;
  request.max_nodes = 5;
  request.generation = int64_t{1} << 40;
  request.last_rank = 4;
  request.num_nodes = 5;
  request.restart_count = 1;
  request.token = "launch-leader";
  request.stepped = true;
  request.early_failures = 7;
  request.failures_in_a_row = 9;
  request.work = HostWork::kDone;
  request.leaving = 15;
  request.term = "leader";
  return request;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << text;
  return text.replace(at, from.size(), to);
}

TEST(RendezvousMessages, JoinRequestsComeBack) {
  EXPECT_EQ(join_request_from_json(to_json(some_request())), some_request());
  JoinRequest plain;
  EXPECT_EQ(join_request_from_json(to_json(plain)), plain);
}

// In etcd or a folder agents of two builds may meet.
TEST(RendezvousMessages, WhatAnotherBuildLeavesOutIsUnknown) {
  std::string request = to_json(some_request());
  for (const char* member : {R"("command":"c0ffee",)", R"("folder":"f01de4",)",
                             R"("host_id":"boot/net",)", R"("named":1,)"}) {
    request = replaced(request, member, "");
  }
  const JoinRequest read = join_request_from_json(request);
  EXPECT_EQ(read.command + read.folder + read.host_id, "");
  EXPECT_FALSE(read.named);
  JobRecord ours;
  ours.command = "c0ffee";
  const std::string record = replaced(to_json(ours), R"("command":"c0ffee",)", "");
  EXPECT_EQ(job_record_from_json(record).command, "");
}

TEST(RendezvousMessages, AMarkTellsTextsApartOnlyWithOneSecret) {
  EXPECT_EQ(text_mark("secret", "train"), text_mark("secret", "train"));
  EXPECT_NE(text_mark("secret", "train"), text_mark("secret", "test"));
  EXPECT_NE(text_mark("secret", "train"), text_mark("other", "train"));
}

TEST(RendezvousMessages, LongAndOddTextsAreCutNotRefused) {
  JoinRequest request = some_request();
  request.host = std::string(5000, 'h');
  EXPECT_EQ(join_request_from_json(to_json(request)).host, std::string(255, 'h'));
  request.host = std::string(5000, '\xff');
  EXPECT_LE(join_request_from_json(to_json(request)).host.size(), 255U);
  request.host = request.address = request.role = request.program = std::string(5000, '\n');
  EXPECT_LE(to_json(request).size(), kMaxJoinRequestBytes);
}

TEST(RendezvousMessages, WhatIsNoJoinRequestIsRefused) {
  const std::string good = to_json(some_request());
  const std::string cases[] = {
      "",
      "[]",
      "3",
      "{}",
      good.substr(1),
      good + "x",
      replaced(good, R"("local_size":8)", R"("local_size":0)"),
      replaced(good, R"("local_size":8)", R"("local_size":8.5)"),
      replaced(good, R"("local_size":8)", R"("local_size":18446744073709551608)"),
      replaced(good, R"("local_size":8)", R"("local_size":"8")"),
      replaced(good, R"("max_nodes":5)", R"("max_nodes":1)"),
      replaced(good, R"("torch_port":65535)", R"("torch_port":65536)"),
      replaced(good, R"("work":2)", R"("work":3)"),
      replaced(good, R"("node_rank":3)", R"("node_rank":-1)"),
      replaced(good, R"("role":"trainer")", R"("role":7)"),
      replaced(good, "trainer", std::string(300, 'x')),
      replaced(good, "trainer", std::string(kMaxJoinRequestBytes, 'x')),
      std::string(100000, '['),
  };
  for (const std::string& text : cases) {
    EXPECT_EQ(error_of([&] { join_request_from_json(text); }).code(), ErrorCode::kCorrupt) << text;
  }
}

TEST(RendezvousMessages, AssignmentsComeBackAndAreOfOneSize) {
  HostAssignment assignment;
  assignment.generation = 3;
  assignment.restart_count = 1;
  assignment.max_restarts = 7;
  assignment.run_id = "monday";
  assignment.num_nodes = 1000;
  assignment.node_rank = 999;
  assignment.world_size = 8000;
  assignment.ranks = {7992, 8, 92, 100};
  assignment.store = {"10.0.0.1", 1234};
  assignment.torch = {"10.0.0.1", 1235};
  for (int i = 0; i < 8; ++i) assignment.successors.push_back({"10.0.0." + std::to_string(i), 99});
  const std::string text = to_json(assignment);
  EXPECT_EQ(to_json(host_assignment_from_json(text)), text);
  EXPECT_LT(text.size(), 1000U);
  for (const std::string& bad :
       {replaced(text, R"("node_rank":999)", R"("node_rank":1000)"),
        replaced(text, R"("first_rank":7992)", R"("first_rank":7993)"),
        replaced(text, R"("role_size":100)", R"("role_size":99)"),
        replaced(text, R"("generation":3)", R"("generation":0)"),
        replaced(text, R"("store":{)", R"("store":[],"x":{)"),
        replaced(text, R"("successors":[)", R"("successors":[{"host":"","port":0},)")}) {
    EXPECT_EQ(error_of([&] { host_assignment_from_json(bad); }).code(), ErrorCode::kCorrupt) << bad;
  }
}

TEST(RendezvousMessages, RecordsComeBack) {
  JobRecord record;
  record.state = JobRecord::State::kEnded;
  record.generation = 12;
  record.restart_count = 2;
  record.num_agents = 4;
  record.awaited = "nobody";
  record.role = "trainer";
  record.command = "c0ffee";
  record.named = true;
  record.failure.emplace();
  record.failure->cause = "a \xff byte";
  record.failure->stderr_tail = {"one", "two"};
  const JobRecord back = job_record_from_json(to_json(record));
  EXPECT_EQ(to_json(back), to_json(record));
  EXPECT_EQ(back.failure->stderr_tail.size(), 2U);
  EXPECT_EQ(back.role + back.command, "trainerc0ffee");
  EXPECT_TRUE(back.named);
  EXPECT_EQ(error_of([&] {
              job_record_from_json(replaced(to_json(record), R"("state":3)", R"("state":4)"));
            }).code(),
            ErrorCode::kCorrupt);
}

TEST(NodeOrder, TheNewestGenerationComesFirst) {
  // Two parts of a job meet again: members of generation 5 keep their ranks.
  const HostWish wishes[] = {
      {4, 0, {}, 0}, {5, 1, {}, 1}, {5, 0, {}, 2}, {0, -1, 0, 3}, {4, 1, {}, 4}};
  EXPECT_EQ(order_hosts(wishes, 8), (std::vector<size_t>{2, 1, 0, 4, 3}));
  EXPECT_EQ(order_hosts(wishes, 3), (std::vector<size_t>{2, 1, 0}));
}

}  // namespace
}  // namespace lockstep::testing
