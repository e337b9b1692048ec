#include "lockstep/store/tcp/call_slot.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/base/sealed_memory.h"
#include "tests/store/helpers.h"

namespace lockstep {
namespace {

using testing::error_of;

/// Copies, as a client gets them.
std::vector<UniqueFd> passed(const CallSlots::Opened& opened) {
  std::vector<UniqueFd> fds;
  for (const int fd : opened.descriptors) fds.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  return fds;
}

std::unique_ptr<ClientCallSlot> client_of(const CallSlots::Opened& opened) {
  return ClientCallSlot::from(passed(opened), static_cast<int64_t>(opened.slot->index()));
}

class CallSlotTest : public ::testing::Test {
 protected:
  CallSlots all_;
  CallSlots::Opened opened_ = all_.open(7).value();
  ServerCallSlot& server_ = *opened_.slot;
  std::unique_ptr<ClientCallSlot> client_ = client_of(opened_);
};

TEST_F(CallSlotTest, ARequestIsTakenOnceAndAnsweredOnce) {
  ASSERT_TRUE(client_);
  EXPECT_FALSE(server_.take_request());
  for (const std::string text : {"first", "second", ""}) {
    ASSERT_TRUE(client_->put(text));
    EXPECT_FALSE(client_->has_answer());
    EXPECT_EQ(server_.take_request(), text);
    EXPECT_FALSE(server_.take_request());
    ASSERT_TRUE(server_.answer("answer to " + text));
    ASSERT_TRUE(client_->has_answer());
    EXPECT_EQ(client_->take_reply(), "answer to " + text);
  }
}

TEST_F(CallSlotTest, AnAnswerMayComeOverTheConnection) {
  client_->put("request");
  server_.take_request();
  server_.answer_over_connection();
  EXPECT_TRUE(client_->has_answer());
  EXPECT_FALSE(client_->take_reply());
}

TEST_F(CallSlotTest, TheLongestBodiesFitAndNoLongerOnes) {
  const std::string longest(CallSlotMemory::kRoom, 'x');
  EXPECT_FALSE(client_->put(longest + "x"));
  EXPECT_FALSE(all_.any_raised());
  ASSERT_TRUE(client_->put(longest));
  EXPECT_EQ(server_.take_request(), longest);
  EXPECT_FALSE(server_.answer(longest + "x"));
  EXPECT_FALSE(client_->has_answer());
  ASSERT_TRUE(server_.answer(longest));
  EXPECT_EQ(client_->take_reply(), longest);
}

TEST_F(CallSlotTest, ASizeBeyondTheMemoryIsCorrupt) {
  SharedObject<CallSlotMemory> raw(opened_.memory.get());
  ASSERT_TRUE(raw);
  raw->request.size = CallSlotMemory::kRoom + 1;
  raw->request.count = 1;
  EXPECT_EQ(error_of([&] { server_.take_request(); }).code(), ErrorCode::kCorrupt);
  raw->reply.size = 0xffffffff;
  ASSERT_TRUE(client_->take_reply());
  EXPECT_EQ(client_->take_reply()->size(), CallSlotMemory::kRoom) << "a broken server";
}

TEST_F(CallSlotTest, FlagsNameTheClientsOnce) {
  const auto other = all_.open(8).value();
  const auto other_client = client_of(other);
  EXPECT_FALSE(all_.any_raised());
  client_->put("a");
  other_client->put("b");
  EXPECT_TRUE(all_.any_raised());
  EXPECT_EQ(all_.take_raised(), (std::vector<uint64_t>{7, 8}));
  EXPECT_FALSE(all_.any_raised());
  EXPECT_TRUE(all_.take_raised().empty());
}

TEST_F(CallSlotTest, AClientSeesWhetherTheServerSleeps) {
  client_->put("a");
  EXPECT_FALSE(client_->server_sleeps());
  EXPECT_TRUE(all_.about_to_sleep()) << "a flag is raised already";
  all_.awake();
  all_.take_raised();
  server_.take_request();
  server_.answer("");
  EXPECT_FALSE(all_.about_to_sleep());
  client_->put("b");
  EXPECT_TRUE(client_->server_sleeps());
  all_.awake();
  EXPECT_FALSE(client_->server_sleeps());
}

TEST_F(CallSlotTest, AClientSleepsUntilItsAnswerComes) {
  client_->put("a");
  std::thread server([&] {
    std::this_thread::sleep_for(30ms);
    server_.take_request();
    server_.answer("b");
  });
  Spinning spinning;
  client_->await(client_->count(), spinning, std::chrono::milliseconds(30s));
  EXPECT_TRUE(client_->has_answer());
  server.join();
  client_->put("c");
  client_->await(client_->count(), spinning, 5ms);
  EXPECT_FALSE(client_->has_answer());
  client_->await(client_->count() - 1, spinning, std::chrono::milliseconds(30s));
}

// The client was disconnected while its process was stopped, say, and goes on.
TEST_F(CallSlotTest, AClientThatWasClosedReachesNobody) {
  all_.close(server_.index());
  client_->put("of the closed one");
  EXPECT_TRUE(all_.any_raised());
  EXPECT_TRUE(all_.take_raised().empty());
  const auto next = all_.open(9).value();
  EXPECT_EQ(next.slot->index(), server_.index());
  client_->put("again");
  EXPECT_EQ(all_.take_raised(), std::vector<uint64_t>{9});
  EXPECT_FALSE(next.slot->take_request()) << "its memory is its own";
}

TEST(CallSlots, AreLimited) {
  CallSlots all;
  std::vector<CallSlots::Opened> opened;
  for (size_t i = 0; i < FlagMemory::kSlots; ++i) {
    opened.push_back(all.open(i + 1).value());
    opened.back().memory.reset();  // else descriptors run out
  }
  EXPECT_FALSE(all.open(5000));
  all.close(700);
  EXPECT_EQ(all.open(5000).value().slot->index(), 700U);
}

TEST(SharedObject, NeedsSealedMemoryThatHoldsIt) {
  EXPECT_TRUE(SharedObject<CallSlotMemory>(make_sealed_memory("lockstep-test", 8192).get()));
  EXPECT_FALSE(SharedObject<CallSlotMemory>(make_sealed_memory("lockstep-test", 4096).get()));
  const UniqueFd resizable(::memfd_create("lockstep-test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(resizable.get(), 8192), 0);
  EXPECT_FALSE(SharedObject<CallSlotMemory>(resizable.get()));
}

TEST(ClientCallSlot, NeedsUsableDescriptors) {
  CallSlots all;
  const auto opened = all.open(1).value();
  EXPECT_TRUE(ClientCallSlot::from(passed(opened), 0));
  EXPECT_FALSE(ClientCallSlot::from({}, 0));
  EXPECT_FALSE(ClientCallSlot::from(passed(opened), -1));
  EXPECT_FALSE(ClientCallSlot::from(passed(opened), 1024));
  auto wrong = passed(opened);
  wrong[0] = UniqueFd(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(ClientCallSlot::from(std::move(wrong), 0));
}

}  // namespace
}  // namespace lockstep
