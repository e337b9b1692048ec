// While the others wait for a stopped rank, one of them names it.

#include "lockstep/comm/flight/hang_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <functional>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "lockstep/process_group.h"
#include "tests/comm/support/allowance.h"
#include "tests/comm/support/forked.h"
#include "tests/comm/support/forwarding_store.h"
#include "tests/support/ranks.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

struct Board {
  std::atomic<int> came;
};

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

size_t count(const std::string& text, const std::string& word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

void await(const std::function<bool()>& holds) {
  const auto limit = Deadline::after(std::chrono::seconds(20));
  while (!holds() && !limit.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

struct Seen {
  std::string log;  // of all ranks
  double seconds = 0;
};

/// A store whose first answer to the removal of a hang report is late.
class StallingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  bool erase(std::string_view key, Deadline deadline) override {
    if (key.ends_with("/overdue") && !std::exchange(stalled_, true))
      throw Error(ErrorCode::kTimeout, "the store stalls");
    return ForwardingStore::erase(key, deadline);
  }

 private:
  bool stalled_ = false;
};

/// `victim` stops itself after some barriers, `times` times, each time until the others have
/// reported it.
Seen stop(const HostLayout& hosts, int victim, size_t times = 1) {
  const TempFolder folder;
  const std::string path = folder.path() / "log";
  const Shared<Board> board;
  Seen seen;
  const auto body = [&](World world) {
    const int log = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(log, STDERR_FILENO);
    if (times > 1) world.store = std::make_shared<StallingStore>(world.store);
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(40)});
    for (size_t i = 0; i < times; ++i) {
      for (int64_t k = 0; k < 2 * kFewestCalls; ++k) group.barrier();
      ++board->came;
      if (world.rank == victim) ::raise(SIGSTOP);
    }
    for (int64_t k = 0; k < 2 * kFewestCalls; ++k) group.barrier();
  };
  int size = 0;
  for (const int ranks : hosts) size += ranks;
  const auto watch = [&](const std::vector<int>& pids) {
    for (size_t i = 1; i <= times; ++i) {
      await([&] { return board->came == size * static_cast<int>(i); });
      const auto start = std::chrono::steady_clock::now();
      await([&] { return count(text_of(path), "has waited") >= i; });
      seen.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      ::kill(pids[static_cast<size_t>(victim)], SIGCONT);
    }
  };
  for (const int end : run_rank_processes(hosts, body, std::chrono::seconds(60), watch))
    EXPECT_EQ(end, 0);
  seen.log = text_of(path);
  return seen;
}

void expect_named(const HostLayout& hosts, int victim, const std::string& how) {
  const Seen seen = stop(hosts, victim);
  EXPECT_EQ(count(seen.log, "has waited"), 1u) << seen.log;
  EXPECT_NE(seen.log.find(how), std::string::npos) << seen.log;
  EXPECT_LT(seen.seconds, allowed(3)) << seen.log;
}

TEST(HangWatch, NamesARankThatStoppedInSharedMemory) {
  expect_named({3}, 1, "for rank 1; last operations: rank 1 (stopped): ");
}

TEST(HangWatch, NamesARankThatStoppedOnAnotherHost) {
  expect_named({2, 2}, 3, "for rank 3 on 127.0.0.1; last operations: rank 3 (stopped): ");
}

TEST(HangWatch, ARankSpeaksForOneThatStoppedAndWasToSpeakForItsHost) {
  expect_named({2, 2}, 2, "for rank 2 on 127.0.0.1; last operations: rank 2 (stopped): ");
}

TEST(HangWatch, OfAHostThatStoppedThereIsNoWord) {
  expect_named({1, 1}, 1, "for rank 1 on 127.0.0.1; last operations: rank 1: no word");
}

TEST(HangWatch, NamesTheNextHangThoughTheStoreStalledAfterTheFirst) {
  const Seen seen = stop({3}, 1, 2);
  EXPECT_EQ(count(seen.log, "has waited"), 2u) << seen.log;
}

}  // namespace
}  // namespace lockstep::testing
