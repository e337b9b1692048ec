// send and recv from a program's view: tags in any order, and timeouts, on every transport.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <numeric>
#include <string>
#include <thread>

#include "lockstep/base/log_sink.h"
#include "lockstep/deadline.h"
#include "lockstep/process_group.h"
#include "tests/comm/support/allowance.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forked.h"
#include "tests/support/error_of.h"

namespace lockstep::testing {
namespace {

constexpr DType kFloat = DType::kFloat32;
const std::vector<HostLayout> kLayouts = {{2}, {1, 1}};

/// Runs `body` in two ranks (processes), on one host and on two.
void with_two(const RankBody& body) {
  for (const HostLayout& hosts : kLayouts) {
    EXPECT_EQ(run_rank_processes(hosts, body, std::chrono::seconds(300)), (std::vector<int>{0, 0}))
        << hosts.size() << " hosts";
  }
}

TEST(Inbox, ARecvThatCameLaterIsDoneFirstWhereItsMessageComesFirst) {
  with_two([](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(30)});
    for (const int64_t count : {1, 20'000, 2'000'000}) {
      std::vector<float> first(static_cast<size_t>(count), 1);
      std::vector<float> second(static_cast<size_t>(count), 2);
      float reply = 3;
      if (world.rank == 0) {
        auto later = group.recv(first.data(), count, kFloat, 1, 2);
        group.recv(second.data(), count, kFloat, 1, 1).wait();
        group.send(&reply, 1, kFloat, 1, 3).wait();
        later.wait();
        require(first.back() == 2 && second.back() == 1, "the wrong message");
      } else {
        group.send(first.data(), count, kFloat, 0, 1).wait();
        group.recv(&reply, 1, kFloat, 0, 3).wait();
        group.send(second.data(), count, kFloat, 0, 2).wait();
      }
    }
  });
}

TEST(Inbox, MessagesComeWhileNobodyWaitsForThem) {
  with_two([](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(30)});
    std::vector<float> data(1'000'000, static_cast<float>(world.rank));
    std::vector<float> got(data.size());
    const auto count = static_cast<int64_t>(data.size());
    auto arrives = group.recv(got.data(), count, kFloat, 1 - world.rank);
    // Returns when the other rank, which is in a send as well, has taken it.
    group.send(data.data(), count, kFloat, 1 - world.rank).wait();
    group.barrier();
    while (!arrives.done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    arrives.wait();
    require(got.back() == static_cast<float>(1 - world.rank), "another message");
  });
}

// The thread that waits reads. It checks 200 times per second for deaths; others sleep.
TEST(Inbox, NobodyElseLooksForAMessageThatOneWaitsFor) {
  with_two([](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(30)});
    float data = 0;
    group.barrier();
    if (world.rank == 1) {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      return group.send(&data, 1, kFloat, 0).wait();
    }
    const auto sleeps = [] {
      rusage used{};
      ::getrusage(RUSAGE_SELF, &used);
      return used.ru_nvcsw;
    };
    const auto before = sleeps();
    group.recv(&data, 1, kFloat, 1).wait();
    const auto slept = sleeps() - before;
    require(slept < 1000, std::to_string(slept) + " sleeps in two seconds");
  });
}

TEST(Inbox, WhatNobodyWaitsForAnyMoreIsReadAllTheSame) {
  with_two([](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(30)});
    for (int round = 0; round < 3; ++round) {
      float awaited = 0;
      float other = 0;
      const float sent = 1;
      if (world.rank == 0) {
        auto later = group.recv(&other, 1, kFloat, 1, 2);
        // Long enough that any other reader has given up.
        group.recv(&awaited, 1, kFloat, 1, 1).wait();
        group.send(&sent, 1, kFloat, 1, 3).wait();
        while (!later.done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        require(awaited == 1 && other == 1, "another message");
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        group.send(&sent, 1, kFloat, 0, 1).wait();
        group.recv(&other, 1, kFloat, 0, 3).wait();
        group.send(&sent, 1, kFloat, 0, 2).wait();
      }
    }
  });
}

TEST(Inbox, ManyTagsFromSeveralThreads) {
  with_two([](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(30)});
    constexpr int kMessages = 200;
    std::vector<int32_t> got(kMessages, -1);
    std::vector<int32_t> sent(kMessages);
    std::iota(sent.begin(), sent.end(), 0);
    std::vector<Work> recvs;
    for (int i = kMessages - 1; i >= 0; --i)
      recvs.push_back(
          group.recv(&got[static_cast<size_t>(i)], 1, DType::kInt32, 1 - world.rank, i));
    std::vector<Work> sends;
    for (int i = 0; i < kMessages; ++i)
      sends.push_back(
          group.send(&sent[static_cast<size_t>(i)], 1, DType::kInt32, 1 - world.rank, i));
    std::vector<std::thread> threads;
    for (size_t part = 0; part < 4; ++part) {
      threads.emplace_back([&recvs, part] {
        for (size_t i = part; i < recvs.size(); i += 4) recvs[i].wait();
      });
    }
    for (auto& thread : threads) thread.join();
    for (auto& work : sends) work.wait();
    require(got == sent, "a message went to another recv");
  });
}

TEST(Inbox, AMessageThatDoesNotComeInTimeDoesNotEndTheGroup) {
  with_two([](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::milliseconds(1500)});
    float data = 5;
    if (world.rank == 0) {
      auto other = group.recv(&data, 1, kFloat, 1, 9);
      const Error error = error_of([&] { group.recv(&data, 1, kFloat, 1, 7).wait(); });
      require(error.code() == ErrorCode::kTimeout, error.what());
      require(
          std::string(error.what()) ==
              "recv of 1 float32, tag 7, from rank 1 on rank 0: timeout after 1.5 s waiting for "
              "rank 1, which sent no message with this tag; of rank 1 there is a message with "
              "tag 8",
          error.what());
      require(error_of([&] { other.wait(); }).code() == ErrorCode::kTimeout, "the other recv");
    } else {
      group.send(&data, 1, kFloat, 0, 8).wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(1400));
    }
    group.barrier();
    if (world.rank == 1) group.send(&data, 1, kFloat, 0, 7).wait();
    if (world.rank == 0) {
      data = 0;
      group.recv(&data, 1, kFloat, 1, 8).wait();
      group.recv(&data, 1, kFloat, 1, 7).wait();
      require(data == 5, "what came late is for the next recv of its tag");
    }
    group.barrier();
  });
}

TEST(Inbox, WhoEndsAGroupSaysForWhichMessageItWaits) {
  with_two([](const World& world) {
    std::string said;
    if (world.rank == 0) set_log_sink([&](const std::string& line) { said += line; });
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(7)});
    if (world.rank == 1) return std::this_thread::sleep_for(std::chrono::seconds(8));
    float data = 0;
    auto work = group.recv(&data, 1, kFloat, 1, 4);
    group.destroy();
    set_log_sink(nullptr);
    require(said == "lockstep: rank 0 ends a group and waits for rank 1 to send 1 float32, tag 4\n",
            said);
  });
}

TEST(Inbox, ALargeMessageThatNobodyTakesDoesNotEndAGroupOnOneHost) {
  const auto ends = run_rank_processes(HostLayout{2}, [](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::milliseconds(1500)});
    std::vector<float> data(1 << 20, 1);
    if (world.rank == 0) {
      const Error error = error_of([&] { group.send(data.data(), 1 << 20, kFloat, 1, 1).wait(); });
      require(error.code() == ErrorCode::kTimeout, error.what());
      require(has_name(error, "rank 1, which does not receive it"), error.what());
      data.assign(data.size(), 2);  // it belongs to the program again
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1400));
    }
    group.barrier();
    if (world.rank == 0) group.send(data.data(), 1 << 20, kFloat, 1, 1).wait();
    if (world.rank == 1) {
      group.recv(data.data(), 1 << 20, kFloat, 0, 1).wait();
      require(data.back() == 2, "the message that was taken back");
    }
    group.barrier();
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0}));
}

TEST(Inbox, WhatNobodyAsksForIsBoundedAlikeOnEveryTransport) {
  with_two([](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(200)});
    std::vector<float> data(24 << 20);
    const auto count = static_cast<int64_t>(data.size());
    const Error error = error_of([&] {
      if (world.rank == 0) group.recv(data.data(), 1, kFloat, 1, 2).wait();
      for (int i = 0; i < 4; ++i) group.send(data.data(), count, kFloat, 0, 1).wait();
      group.barrier();
    });
    require(error.code() == ErrorCode::kMismatch, error.what());
    require(has_name(error, "no room to keep it"), error.what());
  });
}

/// While a thread of rank 0 reads, for a message that does not come.
TEST(Inbox, ARecvThatDoesNotFitAMessageThatIsHereEndsTheGroupAtOnce) {
  with_two([](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(40)});
    float data[2] = {};
    if (world.rank == 1) {
      for (const int tag : {8, 7}) group.send(data, 1, kFloat, 0, tag).wait();
      const Error error = error_of([&] { group.barrier(); });
      require(error.code() == ErrorCode::kMismatch, error.what());
      return;
    }
    float other = 0;
    auto never = group.recv(&other, 1, kFloat, 1, 9);
    std::thread reader([&] {
      const Error error = error_of([&] { never.wait(); });
      require(error.code() == ErrorCode::kMismatch, error.what());
    });
    group.recv(data, 1, kFloat, 1, 7).wait();  // the message with tag 8 came before it
    const auto start = std::chrono::steady_clock::now();
    const Error error = error_of([&] { group.recv(data, 2, kFloat, 1, 8).wait(); });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    reader.join();
    require(error.code() == ErrorCode::kMismatch, error.what());
    require(has_name(error, "rank 1 sent 1 float32, rank 0 called recv for 2 float32 (tag 8)"),
            error.what());
    require(took.count() < allowed(2), std::to_string(took.count()) + " s");
  });
}

/// Rank 1 waits for rank 2, which is frozen; rank 0 waits for rank 1 in `call`. Rank 1 begins a
/// second later: it must still wait when rank 0's time is over, also on a busy machine.
void with_a_chain(const HostLayout& hosts, const std::function<void(ProcessGroup&)>& call) {
  const Shared<std::atomic<pid_t>> frozen;
  const Shared<std::atomic<int>> done;
  const auto ends = run_rank_processes(
      hosts,
      [&](const World& world) {
        auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
        auto timed = ProcessGroup::create(world, {.timeout = std::chrono::milliseconds(2500)});
        group.barrier();
        float data = 0;
        if (world.rank == 2) {
          *frozen = ::getpid();
          ::raise(SIGSTOP);
        }
        const Error error = error_of([&] {
          if (world.rank == 0) call(timed);
          if (world.rank == 1) {
            std::this_thread::sleep_for(std::chrono::seconds(1));
            timed.recv(&data, 1, kFloat, 2, 3).wait();
          }
        });
        require(error.code() == ErrorCode::kTimeout, error.what());
        // Rank 1 has a sentence of rank 0 too, if it ended the group.
        if (world.rank == 1) require(has_name(error, "rank 2"), error.what());
        const std::string chain = "rank 2 holds up rank 1: rank 1 waits in recv from 2";
        if (world.rank == 0) require(cause_of(error.what()).starts_with(chain), error.what());
        const auto limit = Deadline::after(std::chrono::seconds(20));
        for (++*done; *done < 2 && !limit.passed();) ::usleep(1000);
        ::kill(*frozen, SIGKILL);
      },
      std::chrono::seconds(60));
  EXPECT_EQ(ends, (std::vector<int>{0, 0, -SIGKILL})) << hosts.size() << " hosts";
}

TEST(Inbox, ARecvThatIsLateNamesTheRankToWhichTheWaitsLead) {
  for (const HostLayout& hosts : {HostLayout{3}, HostLayout{2, 1}, HostLayout{1, 1, 1}}) {
    with_a_chain(hosts, [](ProcessGroup& group) {
      float data = 0;
      group.recv(&data, 1, kFloat, 1, 7).wait();
    });
  }
}

TEST(Inbox, ASendThatIsLateNamesTheRankToWhichTheWaitsLead) {
  const std::vector<float> data(16 << 20);
  for (const HostLayout& hosts : {HostLayout{3}, HostLayout{1, 1, 1}}) {
    with_a_chain(hosts, [&](ProcessGroup& group) {
      group.send(data.data(), static_cast<int64_t>(data.size()), kFloat, 1, 7).wait();
    });
  }
}

TEST(Inbox, ACollectiveThatIsLateNamesTheRankForWhoseMessageOthersWait) {
  with_a_chain(HostLayout{3}, [](ProcessGroup& group) { group.barrier(); });
}

}  // namespace
}  // namespace lockstep::testing
