// A client's calls through shared memory, and all that can happen meanwhile.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/passed_descriptors.h"
#include "lockstep/base/socket.h"
#include "lockstep/store/tcp/call_slot.h"
#include "lockstep/store/tcp/protocol.h"
#include "lockstep/store/tcp/shortcut.h"
#include "lockstep/store/tcp/tcp_store_client.h"
#include "tests/store/helpers.h"
#include "tests/store/tcp/server_process.h"
#include "tests/support/refused_calls.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::mentions;
using testing::run_threads;
using testing::ServerProcess;
using testing::soon;
using testing::with_call_slot;

/// Call slots that this process has mapped as a client: the number of requests in each.
std::vector<uint32_t> requests_in_slots() {
  std::vector<uint32_t> counts;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    void* begin = nullptr;
    void* end = nullptr;
    if (line.find(kCallSlotMemfd) == std::string::npos ||
        std::sscanf(line.c_str(), "%p-%p", &begin, &end) != 2 ||
        static_cast<char*>(end) - static_cast<char*>(begin) != sizeof(CallSlotMemory)) {
      continue;
    }
    counts.push_back(static_cast<const CallSlotMemory*>(begin)->request.count.load());
  }
  return counts;
}

size_t call_slots_here() {
  return requests_in_slots().size();
}

/// For a process with one slot: its requests so far.
uint32_t requests_in_slot() {
  const auto counts = requests_in_slots();
  EXPECT_EQ(counts.size(), 1U);
  return counts.empty() ? 0 : counts[0];
}

/// A call goes through the slot, which is therefore in use.
void expect_slot_used(Store& store) {
  const uint32_t before = requests_in_slot();
  store.set("by slot", "v", soon());
  EXPECT_EQ(requests_in_slot(), before + 1);
}

TEST(CallSlotCalls, BeginAfterSomeCallsOverTheShortcutAlone) {
  ServerProcess server;
  const auto store = server.connect();
  for (int i = 0; i < 20; ++i) store->set("k", "v", soon());
  EXPECT_EQ(call_slots_here(), 0U) << "a large job's clients make few calls";
  with_call_slot(store);
  EXPECT_EQ(call_slots_here(), 1U);
  expect_slot_used(*store);
  const auto by_tcp = with_call_slot(server.connect("localhost"));
  EXPECT_EQ(call_slots_here(), 1U);
}

// These are more than there may be at a time.
TEST(CallSlotCalls, EndWithTheirClient) {
  ServerProcess server;
  for (size_t i = 0; i < FlagMemory::kSlots + 3; ++i) {
    const auto store = with_call_slot(server.connect());
    ASSERT_EQ(call_slots_here(), 1U) << i;
  }
  EXPECT_EQ(call_slots_here(), 0U);
}

TEST(CallSlotCalls, LongValuesGoOverTheConnection) {
  ServerProcess server;
  const auto store = with_call_slot(server.connect());
  for (const size_t size : {0, 1, 3900, 4032, 4100, 100'000, 8 << 20}) {
    const std::string value(size, 'x');
    const uint32_t before = requests_in_slot();
    store->set("k", value, soon());
    EXPECT_EQ(requests_in_slot(), before + (size < 4000 ? 1 : 0)) << size;
    EXPECT_EQ(store->get("k", soon()), value);
  }
}

TEST(CallSlotCalls, AWaitEndsWithItsKeyOrItsDeadline) {
  ServerProcess server;
  const auto store = with_call_slot(server.connect());
  const auto other = with_call_slot(server.connect());
  const auto error = error_of([&] { store->get("missing", Deadline::after(50ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "'missing'")) << error.what();
  auto wait = std::async(std::launch::async, [&] { return store->get("late", soon()); });
  EXPECT_EQ(wait.wait_for(30ms), std::future_status::timeout);
  other->set("late", "v", soon());
  EXPECT_EQ(wait.get(), "v");
  const uint32_t before = requests_in_slots()[0] + requests_in_slots()[1];
  store->add("n", 1, soon());
  EXPECT_EQ(requests_in_slots()[0] + requests_in_slots()[1], before + 1);
}

// Their answer would come over the connection in any case, and wake a second thread.
TEST(CallSlotCalls, WaitsForOthersStayWithTheConnection) {
  ServerProcess server;
  const auto store = with_call_slot(server.connect());
  const uint32_t before = requests_in_slot();
  store->set("a", "v", soon());
  store->wait(std::vector<std::string>{"a"}, soon());
  store->arrive("b", "v", std::vector<std::string>{"a"}, soon());
  store->watch("a", 0, soon());
  EXPECT_EQ(requests_in_slot(), before + 1);
}

TEST(CallSlotCalls, ThreadsOfOneClientShareItsSlot) {
  ServerProcess server;
  const auto store = with_call_slot(server.connect());
  auto watcher = std::async(std::launch::async, [&] { return store->get("end", soon()); });
  run_threads(6, [&](int index) {
    const std::string own = "own" + std::to_string(index);
    for (int i = 1; i <= 300; ++i) {
      store->add("sum", 1, soon());
      EXPECT_EQ(store->add(own, 2, soon()), 2 * i);
      store->set(own + "/text", std::string(static_cast<size_t>(i * 20), 'x'), soon());
      EXPECT_EQ(store->get(own + "/text", soon()).size(), static_cast<size_t>(i * 20));
    }
  });
  EXPECT_EQ(store->add("sum", 0, soon()), 1800);
  EXPECT_GT(requests_in_slot(), 100U);
  store->set("end", "v", soon());
  EXPECT_EQ(watcher.get(), "v");
}

TEST(CallSlotCalls, ManyClientsGetTheirOwnAnswers) {
  ServerProcess server;
  run_threads(70, [&](int index) {
    const auto store = with_call_slot(server.connect());
    const std::string own = "own" + std::to_string(index);
    for (int i = 1; i <= 100; ++i) {
      EXPECT_EQ(store->add(own, 1, soon()), i);
      store->add("sum", 1, soon());
    }
  });
  EXPECT_EQ(server.connect()->get("sum", soon()), "7000");
}

TEST(CallSlotCalls, AStoppedServerIsATimeoutAndNoCallOvertakesAnother) {
  ServerProcess server;
  const auto store = with_call_slot(server.connect());
  for (int round = 0; round < 5; ++round) {
    server.stop();
    const auto error = error_of([&] { store->set("k", "1", Deadline::after(30ms)); });
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_TRUE(mentions(error, "'k'")) << error.what();
    // The call slot is occupied, so these go over the connection, and must come later.
    for (const char* value : {"2", "3"}) {
      EXPECT_EQ(error_of([&] { store->set("k", value, Deadline::after(5ms)); }).code(),
                ErrorCode::kTimeout);
    }
    server.go_on();
    EXPECT_EQ(store->get("k", soon()), "3");
    store->set("k", "4", soon());
    EXPECT_EQ(store->get("k", soon()), "4");
    expect_slot_used(*store);
  }
}

// The slot is free, and would be served first.
TEST(CallSlotCalls, NoneOvertakesACallThatWasGivenUpAtTheConnection) {
  ServerProcess server;
  const auto store = with_call_slot(server.connect());
  const uint32_t before = requests_in_slot();
  server.stop();
  for (const std::string& value : {std::string(5000, '1'), std::string("2")}) {
    EXPECT_EQ(error_of([&] { store->set("k", value, Deadline::after(20ms)); }).code(),
              ErrorCode::kTimeout);
  }
  EXPECT_EQ(requests_in_slot(), before);
  server.go_on();
  EXPECT_EQ(store->get("k", soon()), "2");
  expect_slot_used(*store);
}

// It asks with its 32nd call.
TEST(CallSlotCalls, BeginLaterIfTheServerIsSlowThen) {
  ServerProcess server;
  const auto store = server.connect();
  for (int i = 0; i < 31; ++i) store->set("k", "v", soon());
  server.stop();
  EXPECT_EQ(error_of([&] { store->set("k", "v", Deadline::after(20ms)); }).code(),
            ErrorCode::kTimeout);
  server.go_on();
  store->get("k", soon());
  expect_slot_used(*store);
}

TEST(CallSlotCalls, AWaitThatAStoppedServerHasNotTakenIsCancelledAfterIt) {
  ServerProcess server;
  const auto store = with_call_slot(server.connect());
  server.stop();
  EXPECT_EQ(error_of([&] { store->get("missing", Deadline::after(20ms)); }).code(),
            ErrorCode::kTimeout);
  server.go_on();
  store->add("n", 1, soon());
  expect_slot_used(*store);
}

TEST(CallSlotCalls, AKilledServerIsLostAtOnce) {
  ServerProcess server;
  const auto store = with_call_slot(server.connect());
  server.stop();
  auto call = std::async(std::launch::async, [&] {
    return error_of([&] { store->set("k", "v", Deadline::after(1h)); }).code();
  });
  EXPECT_EQ(call.wait_for(50ms), std::future_status::timeout);
  ASSERT_EQ(call_slots_here(), 1U);
  server.end();
  EXPECT_EQ(call.get(), ErrorCode::kPeerLost);
  EXPECT_EQ(error_of([&] { store->set("k", "v", soon()); }).code(), ErrorCode::kPeerLost);
}

// The server sleeps meanwhile, so each call has to wake it.
TEST(CallSlotCalls, ReachAServerThatSleeps) {
  ServerProcess server;
  const auto store = with_call_slot(server.connect());
  for (int i = 1; i <= 20; ++i) {
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(store->add("n", 1, soon()), i);
  }
  expect_slot_used(*store);
}

// It may be at any place in a call. Calls of another client go on.
TEST(CallSlotCalls, AClientThatIsStoppedOrKilledHoldsUpNoOther) {
  ServerProcess server;
  const auto store = with_call_slot(server.connect());
  for (int i = 0; i < 20; ++i) {
    int begun[2];
    ASSERT_EQ(::pipe(begun), 0);
    const pid_t client = ::fork();
    if (client == 0) {
      testing::run_in_child([&] {
        const auto own = with_call_slot(server.connect());
        if (::write(begun[1], "x", 1) != 1) return;
        while (true) own->add("n", 1, soon());
      });
    }
    ::close(begun[1]);
    char byte = 0;
    ASSERT_EQ(::read(begun[0], &byte, 1), 1);
    ::close(begun[0]);
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + i));
    ::kill(client, SIGSTOP);
    ::waitpid(client, nullptr, WUNTRACED);
    for (int j = 0; j < 50; ++j) store->set("k", "v", soon());
    ::kill(client, SIGKILL);
    ::waitpid(client, nullptr, 0);
    for (int j = 0; j < 50; ++j) store->set("k", "v", soon());
  }
  expect_slot_used(*store);
}

/// A client that may leave the server asleep, as if another one kept it awake.
class QuietClient {
 public:
  explicit QuietClient(const ServerProcess& server)
      : fd_(connect_shortcut({"127.0.0.1", server.port()})) {
    authenticate_client(fd_.get(), "secret", "store", soon());
    RequestFrame ask;
    ask.id = 1;
    ask.request.op = StoreOp::kOpenCallSlot;
    send(ask);
    std::vector<UniqueFd> passed;
    std::array<char, 4096> reply{};
    const ssize_t got = receive_with_descriptors(fd_.get(), reply, &passed);
    const auto granted = decode_reply(body_of({reply.data(), static_cast<size_t>(got)})).reply;
    slot_ = ClientCallSlot::from(std::move(passed), granted.number);
  }

  /// Whether the request was answered, in a second at most.
  bool call(StoreOp op, const std::string& key, int64_t number, bool wakes_server) {
    RequestFrame frame;
    frame.id = ++last_id_;
    frame.request.op = op;
    frame.request.keys = {key};
    frame.request.number = number;
    slot_->put(body_of(encode(frame)));
    RequestFrame wake;
    wake.request.op = StoreOp::kCancel;
    if (wakes_server) send(wake);
    Spinning spinning;
    slot_->await(slot_->count(), spinning, std::chrono::milliseconds(1s));
    return slot_->has_answer();
  }

 private:
  void send(const RequestFrame& frame) {
    const std::string bytes = encode(frame);
    send_all(fd_.get(), bytes.data(), bytes.size(), soon(), "server");
  }

  UniqueFd fd_;
  std::unique_ptr<ClientCallSlot> slot_;
  uint64_t last_id_ = 1;
};

// The server looks at the flags four times a second while heartbeats are due.
TEST(CallSlotCalls, AreHeartbeatsAlsoWithoutAnyByte) {
  ServerProcess server;
  const auto other = server.connect();
  bool lived = false;
  // On a busy machine this process may be late; such an attempt shows nothing.
  for (int attempt = 0; attempt < 10 && !lived; ++attempt) {
    QuietClient client(server);
    const std::string key = "k" + std::to_string(attempt);
    if (!client.call(StoreOp::kSetWithLease, key, 1000, true)) continue;
    const auto end = Deadline::after(2500ms);
    while (!end.passed() && client.call(StoreOp::kAdd, "n", 1, false)) {
    }
    lived = end.passed() && other->try_get(key, soon()).has_value();
  }
  EXPECT_TRUE(lived);
}

TEST(CallSlotCalls, ASilentHolderLearnsThatItLostItsKeys) {
  ServerProcess server;
  const auto store = with_call_slot(server.connect());
  expect_slot_used(*store);
  store->set_with_lease("k", "v", 50ms, soon());
  testing::wait_until_erased(*server.connect(), "k");
  const auto error = error_of([&] { store->add("n", 1, soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_TRUE(mentions(error, "nothing was heard")) << error.what();
}

TEST(CallSlotCalls, AServerWithoutSharedMemoryDoesWithoutSlots) {
  ServerProcess server([] { testing::refuse_calls({SYS_memfd_create}, ENOSYS); });
  const auto store = with_call_slot(server.connect());
  EXPECT_EQ(call_slots_here(), 0U);
  for (int i = 1; i <= 100; ++i) EXPECT_EQ(store->add("n", 1, soon()), i);
}

int calls_without_descriptors(const ServerProcess& server) {
  const auto store = server.connect();
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 0;  // none can be opened from here on
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
  with_call_slot(store);
  for (int i = 1; i <= 100; ++i) {
    if (store->add("n", 1, soon()) != i) return 3;
  }
  return 0;
}

TEST(CallSlotCalls, AClientWithoutDescriptorsDoesWithoutItsSlot) {
  ServerProcess server;
  const pid_t child = ::fork();
  if (child == 0) testing::run_in_child([&] { ::_exit(calls_without_descriptors(server)); });
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(CallSlotCalls, AForkedChildIsRefused) {
  ServerProcess server;
  const auto store = with_call_slot(server.connect());
  const pid_t child = ::fork();
  if (child == 0) {
    const auto error = error_of([&] { store->set("k", "v", soon()); });
    ::_exit(error.code() == ErrorCode::kInvalidArgument ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  store->set("k", "v", soon());
}

/// A server whose answers the test writes, and its client.
class HandMadeServer {
 public:
  HandMadeServer() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw io_error("pair");
    fd_.reset(ends[0]);
    client_ = std::make_unique<TcpStoreClient>(UniqueFd(ends[1]), nullptr, "server");
  }

  Store& client() { return *client_; }
  int fd() const { return fd_.get(); }

  /// The next request; it is a set, or asks for a slot.
  RequestFrame next() {
    while (true) {
      if (const auto body = reader_.next()) return decode_request(*body);
      std::array<char, 4096> bytes{};
      reader_.append({bytes.data(), recv_some(fd_.get(), bytes.data(), bytes.size(), soon(), "")});
    }
  }
  void answer(uint64_t id) { send(encode(ReplyFrame{id, {}})); }
  void send(std::string_view bytes) { send_all(fd_.get(), bytes.data(), bytes.size(), soon(), ""); }

  /// Answers calls until one asks for a slot; the id of that request.
  uint64_t answer_until_asked() {
    while (true) {
      const RequestFrame frame = next();
      if (frame.request.op == StoreOp::kOpenCallSlot) return frame.id;
      answer(frame.id);
    }
  }

 private:
  UniqueFd fd_;
  FrameReader reader_{kMaxRequestBody};
  std::unique_ptr<TcpStoreClient> client_;
};

std::string granted(uint64_t id, const CallSlots::Opened& opened) {
  StoreReply reply;
  reply.yes = true;
  reply.number = static_cast<int64_t>(opened.slot->index());
  return encode(ReplyFrame{id, reply});
}

/// The request in the slot, once it is there.
RequestFrame await_request(ServerCallSlot& slot) {
  for (const auto limit = soon(); !limit.passed(); std::this_thread::yield()) {
    if (const auto body = slot.take_request()) return decode_request(*body);
  }
  throw Error(ErrorCode::kTimeout, "no request came into the slot");
}

// The descriptors come with the first byte, and the client serves other calls meanwhile.
TEST(CallSlotCalls, BeginWithAGrantInPieces) {
  HandMadeServer server;
  CallSlots slots;
  const auto opened = slots.open(1).value();
  auto served = std::async(std::launch::async, [&] {
    const uint64_t id = server.answer_until_asked();
    const std::string frame = granted(id, opened);
    send_with_descriptors(server.fd(), frame.substr(0, 1), opened.descriptors);
    std::this_thread::sleep_for(20ms);
    server.send(frame.substr(1));
    server.answer(server.next().id);
    const uint64_t by_slot = await_request(*opened.slot).id;
    opened.slot->answer(body_of(encode(ReplyFrame{by_slot, {}})));
  });
  for (int i = 0; i < 33; ++i) server.client().set("k", "v", soon());
  served.get();
}

TEST(CallSlotCalls, BeginAfterARefusalSomeTimeLater) {
  HandMadeServer server;
  CallSlots slots;
  const auto opened = slots.open(1).value();
  auto served = std::async(std::launch::async, [&] {
    server.answer(server.answer_until_asked());
    const uint64_t again = server.answer_until_asked();
    send_with_descriptors(server.fd(), granted(again, opened), opened.descriptors);
    server.answer(server.next().id);
    const uint64_t by_slot = await_request(*opened.slot).id;
    opened.slot->answer(body_of(encode(ReplyFrame{by_slot, {}})));
  });
  for (int i = 0; i < 32 + 1024 + 1; ++i) server.client().set("k", "v", soon());
  served.get();
}

TEST(CallSlotCalls, NonsenseInTheSlotLosesTheServer) {
  for (const bool other_id : {true, false}) {
    HandMadeServer server;
    CallSlots slots;
    const auto opened = slots.open(1).value();
    auto served = std::async(std::launch::async, [&] {
      const uint64_t id = server.answer_until_asked();
      send_with_descriptors(server.fd(), granted(id, opened), opened.descriptors);
      server.answer(server.next().id);
      await_request(*opened.slot);
      opened.slot->answer(other_id ? body_of(encode(ReplyFrame{0, {}})) : "nonsense");
    });
    for (int i = 0; i < 32; ++i) server.client().set("k", "v", soon());
    const auto error = error_of([&] { server.client().set("k", "v", soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost) << error.what();
    EXPECT_TRUE(mentions(error, "it sent nonsense")) << error.what();
    served.get();
  }
}

}  // namespace
}  // namespace lockstep
