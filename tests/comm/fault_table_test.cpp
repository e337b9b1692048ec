// A table of the faults of one rank in a running job: each fault at a (rank, step, point), on each
// transport that can have it. Each must end on every rank, in time, with one text that names the
// culprit. Shared memory has no ports and no links, so it lacks those rows.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <thread>

#include "lockstep/base/auth.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "lockstep/comm/fault_point.h"
#include "lockstep/comm/native/tcp/peers.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/version.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forked.h"
#include "tests/comm/support/wires.h"

namespace lockstep::testing {
namespace {

enum class Fault {
  kKill,           // dies
  kStop,           // is frozen
  kSlow,           // comes after the deadline
  kShape,          // gives another count
  kOrder,          // makes two calls the other way round
  kSkip,           // omits one call
  kSkipLast,       // omits the job's last call
  kLeave,          // ends its group early
  kCutLink,        // no data passes between it and the others any more
  kHalfOpen,       // its host is gone: no end of a connection ever arrives
  kGarbageOnLink,  // invalid bytes in a connection
  // In these two the rank itself never comes; a foreign connection does, at its expected port.
  kGarbageOnPort,
  kForeignJob,
  kForeignGroup,
};

enum class When { kBefore, kMeeting, kSending, kReceiving };

struct Row {
  Fault fault;
  HostLayout hosts;
  int rank;
  int step;
  When when;  // within the step
  ErrorCode error;
  const char* says;  // in the cause of the error, on every rank
  const char* says_2;
  const char* did;  // in the last operations of the ranks
};

const HostLayout kShm{3};
const HostLayout kTcp{1, 1, 1};
const HostLayout kPairs{1, 1, 1, 1};
const HostLayout kHierarchical{2, 2};
const HostLayout kTwoAndOne{2, 1};
constexpr int kSteps = 4;
constexpr int64_t kCount = 100'000;

// clang-format off
const std::vector<Row> kTable = {
    {Fault::kKill,          kShm,       1, 2, When::kMeeting,   ErrorCode::kPeerLost, "rank 1 (in it, last finished", "died", "rank 1 (dead): in all_reduce #3 (float32, 390.6 KiB) at fault_table_test.cpp:"},
    {Fault::kKill,          kTcp,       1, 2, When::kSending,   ErrorCode::kPeerLost, "rank 1: ", "", "rank 1: no word"},
    {Fault::kKill,          kHierarchical,  3, 2, When::kReceiving, ErrorCode::kPeerLost, "rank 3", "", "rank 3 (dead): in all_reduce #3 (float32, 390.6 KiB) at fault_table_test.cpp:"},
    {Fault::kStop,          kShm,       2, 3, When::kMeeting,   ErrorCode::kTimeout,  "waiting for rank 2 (in it", "", "rank 2 (stopped): in all_reduce #5 (float32, 390.6 KiB) at fault_table_test.cpp:"},
    {Fault::kStop,          kTcp,       0, 3, When::kReceiving, ErrorCode::kTimeout,  "rank 0 did not come in time", "", "rank 0: no word"},
    {Fault::kStop,          kHierarchical,  1, 3, When::kSending,   ErrorCode::kTimeout,  "rank 1 did not come in time", "", "rank 1 (stopped): in all_reduce #5 (float32, 390.6 KiB) at fault_table_test.cpp:"},
    {Fault::kSlow,          kShm,       1, 3, When::kBefore,    ErrorCode::kTimeout,  "waiting for rank 1 (not in it yet, last finished barrier #4)", "", ": done with barrier #4 at fault_table_test.cpp:"},
    {Fault::kSlow,          kTcp,       1, 3, When::kBefore,    ErrorCode::kTimeout,  "rank 1 did not come in time", "", ": done with barrier #4 at fault_table_test.cpp:"},
    {Fault::kSlow,          kHierarchical,  3, 3, When::kBefore,    ErrorCode::kTimeout,  "rank 3 did not come in time", "", ": done with barrier #4 at fault_table_test.cpp:"},
    {Fault::kShape,         kShm,       1, 2, When::kBefore,    ErrorCode::kMismatch, "rank 1 called all_reduce #3 (float32, 100001 elements", "100000 elements", "in all_reduce #3 (float32, 390.6 KiB) at fault_table_test.cpp:"},
    {Fault::kShape,         kTcp,       1, 2, When::kBefore,    ErrorCode::kMismatch, "rank 1 called all_reduce #3 (float32, 100001 elements", "100000 elements", "in all_reduce #3 (float32, 390.6 KiB) at fault_table_test.cpp:"},
    {Fault::kShape,         kHierarchical,  2, 2, When::kBefore,    ErrorCode::kMismatch, "rank 2 called all_reduce #3 (float32, 100001 elements", "100000 elements", "in all_reduce #3 (float32, 390.6 KiB) at fault_table_test.cpp:"},
    {Fault::kOrder,         kShm,       1, 2, When::kBefore,    ErrorCode::kMismatch, "rank 1 called barrier #3", "called all_reduce #3", "rank 1: in barrier #3 at fault_table_test.cpp:"},
    {Fault::kOrder,         kTcp,       1, 2, When::kBefore,    ErrorCode::kMismatch, "rank 1 called barrier #3", "called all_reduce #3", "rank 1: in barrier #3 at fault_table_test.cpp:"},
    {Fault::kOrder,         kPairs,     1, 2, When::kBefore,    ErrorCode::kMismatch, "rank 1 called barrier #3", "called all_reduce #3", "rank 1: in barrier #3 at fault_table_test.cpp:"},
    {Fault::kOrder,         kHierarchical,  1, 2, When::kBefore,    ErrorCode::kMismatch, "rank 1 called barrier #3", "called all_reduce #3", "rank 1: in barrier #3 at fault_table_test.cpp:"},
    {Fault::kSkip,          kShm,       2, 3, When::kBefore,    ErrorCode::kMismatch, "rank 2 called barrier #5", "called all_reduce #5", "rank 2: in barrier #5 at fault_table_test.cpp:"},
    {Fault::kSkip,          kTcp,       2, 3, When::kBefore,    ErrorCode::kMismatch, "rank 2 called barrier #5", "called all_reduce #5", "rank 2: in barrier #5 at fault_table_test.cpp:"},
    {Fault::kSkip,          kPairs,     2, 3, When::kBefore,    ErrorCode::kMismatch, "rank 2 called barrier #5", "called all_reduce #5", "rank 2: in barrier #5 at fault_table_test.cpp:"},
    {Fault::kSkip,          kHierarchical,  2, 3, When::kBefore,    ErrorCode::kMismatch, "rank 2 called barrier #5", "called all_reduce #5", "rank 2: in barrier #5 at fault_table_test.cpp:"},
    {Fault::kSkipLast,      kShm,       1, 4, When::kBefore,    ErrorCode::kTimeout,  "barrier #8: timeout after", "rank 1 (not in it yet, last finished all_reduce #7)", ": done with all_reduce #7 (float32, 390.6 KiB) at fault_table_test.cpp:"},
    {Fault::kSkipLast,      kTcp,       1, 4, When::kBefore,    ErrorCode::kTimeout,  "rank 1 did not come in time", "barrier #8", ": done with all_reduce #7 (float32, 390.6 KiB) at fault_table_test.cpp:"},
    {Fault::kSkipLast,      kPairs,     1, 4, When::kBefore,    ErrorCode::kTimeout,  "rank 1 did not come in time", "barrier #8", ": done with all_reduce #7 (float32, 390.6 KiB) at fault_table_test.cpp:"},
    {Fault::kSkipLast,      kHierarchical,  1, 4, When::kBefore,    ErrorCode::kTimeout,  "rank 1 did not come in time", "barrier #8", ": done with all_reduce #7 (float32, 390.6 KiB) at fault_table_test.cpp:"},
    {Fault::kLeave,         kShm,       1, 3, When::kBefore,    ErrorCode::kPeerLost, "rank 1 (", "ended its process group while others still used it", ""},
    {Fault::kLeave,         kTcp,       1, 3, When::kBefore,    ErrorCode::kPeerLost, "rank 1: ", "", ""},
    {Fault::kLeave,         kHierarchical,  3, 3, When::kBefore,    ErrorCode::kPeerLost, "rank 3", "", ""},
    {Fault::kCutLink,       kTcp,       1, 2, When::kBefore,    ErrorCode::kTimeout,  "nothing passes between rank 1 and ranks 0, 2", "", "ranks 0-2: in all_reduce #4"},
    {Fault::kCutLink,       kTwoAndOne, 2, 2, When::kBefore,    ErrorCode::kTimeout,  "nothing passes between rank 0 and rank 2", "", "ranks 0-2: in all_reduce #4"},
    {Fault::kHalfOpen,      kTcp,       1, 2, When::kBefore,    ErrorCode::kTimeout,  "rank 1 did not come in time", "", "rank 1: no word"},
    {Fault::kHalfOpen,      kTwoAndOne, 2, 2, When::kBefore,    ErrorCode::kTimeout,  "rank 2 did not come in time", "", "rank 2: no word"},
    {Fault::kGarbageOnLink, kTcp,       1, 2, When::kBefore,    ErrorCode::kCorrupt,  "rank 1: sent bytes that are no frame", "", ""},
    {Fault::kGarbageOnLink, kTwoAndOne, 2, 2, When::kBefore,    ErrorCode::kCorrupt,  "rank 2: sent bytes that are no frame", "", ""},
    {Fault::kGarbageOnPort, kTcp,       2, 0, When::kBefore,    ErrorCode::kTimeout,  "no connection with rank 2; last connection refused", "", ""},
    {Fault::kGarbageOnPort, kTwoAndOne, 2, 0, When::kBefore,    ErrorCode::kTimeout,  "no connection with rank 2; last connection refused", "", ""},
    {Fault::kForeignJob,    kTcp,       2, 0, When::kBefore,    ErrorCode::kTimeout,  "no connection with rank 2; last connection refused", "does not know this job's secret", ""},
    {Fault::kForeignJob,    kTwoAndOne, 2, 0, When::kBefore,    ErrorCode::kTimeout,  "no connection with rank 2; last connection refused", "does not know this job's secret", ""},
    {Fault::kForeignGroup,  kTcp,       2, 0, When::kBefore,    ErrorCode::kTimeout,  "no connection with rank 2", "", ""},
};
// clang-format on

bool comes_to_the_port(Fault fault) {
  return fault == Fault::kGarbageOnPort || fault == Fault::kForeignJob ||
         fault == Fault::kForeignGroup;
}

bool breaks_links(Fault fault) {
  return fault == Fault::kCutLink || fault == Fault::kHalfOpen || fault == Fault::kGarbageOnLink;
}

/// Death and mismatch are noticed at once; only silence needs the timeout.
std::chrono::milliseconds timeout_of(const Row& row) {
  if (row.error != ErrorCode::kTimeout) return std::chrono::seconds(20);
  return std::chrono::milliseconds(kSanitized ? 4000 : 3000);  // the calls before have it, too
}

/// Limit from the fault to the last rank's error: at once, or soon after the deadline. Where
/// nothing is heard of other hosts, ranks wait 0.85 s for their word; and six rows run at a time.
std::chrono::milliseconds bound_of(const Row& row) {
  const auto late = std::chrono::milliseconds(kSanitized ? 8000 : 3000);
  return row.error == ErrorCode::kTimeout ? timeout_of(row) + late : late;
}

int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();  // one clock for all
}

/// Shared by all processes of a row.
struct Board {
  static constexpr int kRanks = 4;
  struct End {
    std::atomic<int64_t> at_ns;
    int code;
    std::array<char, 4096> text;
  };
  std::atomic<pid_t> victim;
  std::atomic<int64_t> struck_ns;
  std::atomic<int> ended;
  std::atomic<int> whole;      // ranks that no longer need their links before they break
  std::atomic<int> broken;     // ranks that have broken their links
  std::atomic<int> num_ports;  // of the victim's connections; 0 until they are known
  std::array<int, 16> ports;
  std::array<End, kRanks> ends;

  void record(int rank, const Error& error) {
    End& end = ends.at(static_cast<size_t>(rank));
    end.code = static_cast<int>(error.code());
    std::strncpy(end.text.data(), error.what(), end.text.size() - 1);
    end.at_ns = now_ns();
    ++ended;
  }
};

// Of the victim's process; set before the hook.
Board* hook_board;
FaultPoint hook_point;
int hook_signal;

void strike_at_point(int world_rank, OpKind kind, FaultPoint point) {
  (void)world_rank;
  if (kind != OpKind::kAllReduce || point != hook_point) return;
  hook_board->struck_ns = now_ns();
  ::raise(hook_signal);
}

void arm(Board& board, When when, int signal) {
  hook_board = &board;
  hook_signal = signal;
  hook_point = when == When::kMeeting   ? FaultPoint::kBarrier
               : when == When::kSending ? FaultPoint::kSending
                                        : FaultPoint::kReceiving;
  fault_hook = strike_at_point;
}

/// One rank of a row's job: steps of an all_reduce and a barrier, until an error.
class Rank {
 public:
  Rank(const World& world, const Row& row, Board& board)
      : world_(world), row_(row), board_(board), victim_(world.rank == row.rank), data_(kMost) {}

  void run() {
    if (victim_) board_.victim = ::getpid();
    if (victim_ && comes_to_the_port(row_.fault)) return knock();
    const auto before = wires();  // connections to the store
    group_.emplace(ProcessGroup::create(world_, {.timeout = timeout_of(row_)}));
    for (int step = 1; step <= kSteps; ++step) {
      if (step == row_.step && breaks_links(row_.fault)) break_links(before);  // made in step 1
      victim_&& step == row_.step ? go_wrong() : usual();
    }
    if (victim_) await_others();
    // A rank that omitted a call sees the others' error in the end. It may not see it in the call
    // in which they gave up, because it had their data already.
    for (int i = 0; i < 2; ++i) group_->barrier();
  }

 private:
  static constexpr int64_t kMost = kCount + 1;

  void sum(int64_t count) {
    group_->all_reduce(data_.data(), count, DType::kFloat32, ReduceOp::kSum).wait();
  }
  void usual() {
    sum(kCount);
    group_->barrier();
  }
  template <class Ready>
  static void await(const Ready& ready) {
    while (!ready()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void await_others() {
    await([this] { return board_.ended == world_.size - 1; });
  }

  void go_wrong() {
    if (row_.when != When::kBefore) {
      arm(board_, row_.when, row_.fault == Fault::kKill ? SIGKILL : SIGSTOP);
      usual();
      throw std::runtime_error("the rank was not struck");
    }
    board_.struck_ns = now_ns();
    switch (row_.fault) {
      case Fault::kSlow:
        await_others();
        return usual();
      case Fault::kShape:
        return sum(kCount + 1);
      case Fault::kOrder:
        group_->barrier();
        return sum(kCount);
      case Fault::kSkip:
        return group_->barrier();
      case Fault::kSkipLast:
        return sum(kCount);
      case Fault::kLeave:
        group_.reset();
        await_others();
        std::exit(0);
      case Fault::kHalfOpen:
        ::raise(SIGKILL);
        return;
      default:
        return usual();
    }
  }

  void find_links(const std::vector<Wire>& before) {
    for (const Wire& wire : wires()) {
      const bool old = std::any_of(before.begin(), before.end(),
                                   [&](const Wire& one) { return one.inode == wire.inode; });
      if (!old) links_.push_back(wire);
    }
    if (victim_) {
      for (size_t i = 0; i < links_.size(); ++i) board_.ports.at(i) = links_[i].local_port;
      board_.num_ports = static_cast<int>(links_.size());
      return;
    }
    await([this] { return board_.num_ports > 0; });
    std::erase_if(links_, [this](const Wire& wire) {  // links to ranks other than the victim
      const auto end = board_.ports.begin() + board_.num_ports;
      return std::find(board_.ports.begin(), end, wire.remote_port) == end;
    });
  }

  void break_links(const std::vector<Wire>& before) {
    group_->barrier();
    find_links(before);
    ++board_.whole;  // a slower rank may still be in the barrier
    await([this] { return board_.whole == world_.size; });
    for (const Wire& wire : links_) {
      if (row_.fault != Fault::kGarbageOnLink) {
        if (row_.fault == Fault::kCutLink || !victim_) drop_all_input(wire.fd);
      } else if (victim_) {
        const std::string garbage(200, 'x');
        ::send(wire.fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
      }
    }
    ++board_.broken;  // not through the group: its links are broken
    await([this] { return board_.broken == world_.size; });
  }

  /// Comes as far as the others need for their wait, then sends them something else.
  void knock() {
    Store& store = *world_.store;
    const nlohmann::json card = {{"build", build_id()},
                                 {"backend", "auto"},
                                 {"host", world_.host_id},
                                 {"address", world_.address}};
    const auto soon = Deadline::after(30s);
    store.set(fmt::format("comm/1/rank/{}", world_.rank), card.dump(), soon);
    // A connection to it gets no answer.
    const UniqueFd silent = tcp_listen("127.0.0.1", 0);
    const auto own = to_string(Endpoint{"127.0.0.1", local_port(silent.get())});
    store.set(fmt::format("comm/1/port/{}", world_.rank), own, soon);
    const auto places = nlohmann::json::parse(store.get("comm/1/ports", soon));
    board_.struck_ns = now_ns();
    std::vector<UniqueFd> open;
    for (int peer = 0; peer < world_.rank; ++peer) {
      const std::string place = places.at(static_cast<size_t>(peer));
      if (row_.fault == Fault::kForeignGroup) {
        open.push_back(come_from_another_group(peer, place));
        continue;
      }
      open.push_back(tcp_connect(parse_endpoint(place, 0), soon));
      if (row_.fault == Fault::kGarbageOnPort) {
        const std::string garbage(500, 'x');
        send_all(open.back().get(), garbage.data(), garbage.size(), soon, "peer");
      } else {
        refused([&] { authenticate_client(open.back().get(), "another secret", "comm", soon); });
      }
    }
    await_others();
  }

  /// It belongs to this job, so it is accepted, but to no group.
  UniqueFd come_from_another_group(int peer, const std::string& place) {
    tcp::Peers::Group group;
    group.reception = std::make_shared<tcp::Reception>(world_.rank, world_.address, world_.secret);
    group.name = "other";
    group.secret = world_.secret;
    group.rank = world_.rank;
    for (int rank = 0; rank < world_.size; ++rank) {
      group.world_ranks.push_back(rank);
      group.endpoints.push_back(rank == peer ? place : "");
    }
    return tcp::Peers(group).connect(peer, Deadline::after(10s));
  }

  template <class Body>
  static void refused(const Body& body) {
    try {
      body();
    } catch (const Error&) {
      return;
    }
    throw std::runtime_error("a stranger was let in");
  }

  const World& world_;
  const Row& row_;
  Board& board_;
  const bool victim_;
  std::vector<float> data_;
  std::optional<ProcessGroup> group_;
  std::vector<Wire> links_;  // to the victim; on the victim: to all ranks
};

void run_rank(const World& world, const Row& row, Board& board) {
  try {
    Rank(world, row, board).run();
    if (!comes_to_the_port(row.fault)) throw std::runtime_error("nobody noticed");
  } catch (const Error& error) {
    board.record(world.rank, error);
    // The last rank ends a frozen one.
    if (board.ended == world.size - 1 && row.fault == Fault::kStop) ::kill(board.victim, SIGKILL);
  }
}

bool ends_by_signal(Fault fault) {
  return fault == Fault::kKill || fault == Fault::kHalfOpen || fault == Fault::kStop;
}

/// True if the faulty rank itself still gets the group's error.
bool is_told(Fault fault) {
  return !ends_by_signal(fault) && !comes_to_the_port(fault) && fault != Fault::kLeave;
}

/// The stack of a live rank is shown, unless it is frozen and alone on its host.
bool leaves_a_stack(const Row& row) {
  if (row.fault == Fault::kStop) return row.hosts.front() > 1;  // then so has each host
  return row.fault == Fault::kSlow || row.fault == Fault::kSkipLast;
}

void check(const Row& row, const Board& board) {
  const Board::End* first = nullptr;
  const auto size = static_cast<int>(std::accumulate(row.hosts.begin(), row.hosts.end(), 0));
  for (int rank = 0; rank < size; ++rank) {
    if (rank == row.rank && !is_told(row.fault)) continue;
    const Board::End& end = board.ends.at(static_cast<size_t>(rank));
    const std::string text = end.text.data();
    EXPECT_EQ(to_string(static_cast<ErrorCode>(end.code)), to_string(row.error)) << text;
    const std::string cause = cause_of(text);
    for (const char* part : {row.says, row.says_2})
      EXPECT_NE(cause.find(part), std::string::npos) << "no '" << part << "' in: " << text;
    EXPECT_NE(text.substr(cause.size()).find(row.did), std::string::npos)
        << "no '" << row.did << "' in: " << text;
    const auto stack = fmt::format("; stack of rank {}: ", row.rank);
    EXPECT_EQ(text.find(stack) != std::string::npos, leaves_a_stack(row)) << text;
    const auto took = std::chrono::nanoseconds(end.at_ns - board.struck_ns);
    if (rank != row.rank) {
      EXPECT_LE(took, bound_of(row)) << text;
    }
    if (first == nullptr) first = &end;
    // A group that was never made has no error.
    if (!comes_to_the_port(row.fault)) {
      EXPECT_EQ(text, first->text.data());
    }
  }
}

void run_row(const Row& row) {
  SCOPED_TRACE(fmt::format("row {}", &row - kTable.data()));
  const Shared<Board> board;
  const auto ends = run_rank_processes(
      row.hosts, [&](const World& world) { run_rank(world, row, *board); },
      std::chrono::seconds(30));
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    const bool signalled = static_cast<int>(rank) == row.rank && ends_by_signal(row.fault);
    EXPECT_EQ(ends[rank], signalled ? -SIGKILL : 0) << "rank " << rank;
  }
  check(row, *board);
}

TEST(FaultTable, EveryFaultEndsInTimeWithTheRightNameOnEveryRank) {
  constexpr size_t kAtOnce = 6;
  run_forked(kTable, kAtOnce, run_row);
}

}  // namespace
}  // namespace lockstep::testing
