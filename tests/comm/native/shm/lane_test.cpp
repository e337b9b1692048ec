#include "lockstep/comm/native/shm/lane.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <thread>
#include <vector>

namespace lockstep::shm {
namespace {

constexpr int64_t kChunk = Lane::kSlotBytes;

/// A message and both its ends, in one process.
struct Message {
  explicit Message(int64_t bytes) : data(static_cast<size_t>(bytes)), slots(Lane::kSlots * kChunk) {
    // No two chunks are alike.
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i % 251);
    got.resize(data.size());
    sender.open();
  }
  LaneReceiver::Origin origin() const {
    return {::getpid(), reinterpret_cast<uint64_t>(data.data())};
  }
  /// The sender has begun a chunk, and stands still.
  void begin_one() { lane.ends = Ends::unpacked(lane.ends.load()).one_to_the_sender()->packed(); }

  Lane lane = {};
  std::vector<std::byte> data, got;
  std::vector<std::byte> slots;
  LaneSender sender{lane, slots.data(), data.data(), static_cast<int64_t>(data.size())};
};

LaneReceiver receiver_of(Message& message) {
  return {message.lane, message.slots.data(), message.origin(), message.got.data(),
          static_cast<int64_t>(message.data.size())};
}

/// Continues as long as it needs no sender.
LaneStep go_on(LaneReceiver& receiver, bool may_read) {
  while (true) {
    const LaneStep step = receiver.next(may_read);
    if (step == LaneStep::kDone || step == LaneStep::kWait) return step;
    if (step == LaneStep::kTake) {
      receiver.take();
    } else if (receiver.read(step) == LaneReceiver::Read::kRefused) {
      may_read = false;
    }
  }
}

TEST(LaneChunks, AreOfOneSizeButForTheLast) {
  for (const int64_t bytes :
       {int64_t{1}, kChunk - 1, kChunk, kChunk + 1, 7 * kChunk, 9 * kChunk - 5}) {
    const LaneChunks chunks{bytes};
    int64_t next = 0;
    for (uint32_t chunk = 0; chunk < chunks.count(); ++chunk) {
      EXPECT_EQ(chunks.offset(chunk), next);
      EXPECT_GT(chunks.size(chunk), 0U);
      EXPECT_LE(chunks.size(chunk), static_cast<size_t>(kChunk));
      next += static_cast<int64_t>(chunks.size(chunk));
    }
    EXPECT_EQ(next, bytes);
  }
}

TEST(Ends, MoveUntilTheyMeet) {
  Ends ends{0, 3};
  EXPECT_EQ(Ends::unpacked(ends.packed()), ends);
  ends = *ends.one_to_the_sender();
  ends = *ends.one_to_the_receiver();
  EXPECT_EQ(ends, (Ends{1, 2}));
  EXPECT_EQ(ends.one_returned(), (Ends{1, 3}));
  ends = *ends.one_to_the_sender();
  EXPECT_FALSE(ends.one_to_the_sender());
  EXPECT_FALSE(ends.one_to_the_receiver());
  EXPECT_EQ(Ends::unpacked(Ends{7, 0xffff'ffff}.packed()), (Ends{7, 0xffff'ffff}));
}

TEST(NextStep, TakesWhatIsThereReadsWhatIsNotAndWaitsWhereItMayNot) {
  const auto step = [](Ends ends, uint32_t filled, uint32_t taken) {
    return std::pair(next_step(ends, filled, taken, true), next_step(ends, filled, taken, false));
  };
  using Both = std::pair<LaneStep, LaneStep>;
  EXPECT_EQ(step({2, 9}, 2, 1), (Both{LaneStep::kTake, LaneStep::kTake}));
  EXPECT_EQ(step({2, 2}, 2, 1), (Both{LaneStep::kTake, LaneStep::kTake}));
  EXPECT_EQ(step({2, 9}, 2, 2), (Both{LaneStep::kReadBack, LaneStep::kWait}));
  EXPECT_EQ(step({3, 9}, 2, 2), (Both{LaneStep::kReadBack, LaneStep::kWait}));
  EXPECT_EQ(step({3, 3}, 2, 2), (Both{LaneStep::kReadBegun, LaneStep::kWait}));
  EXPECT_EQ(step({3, 3}, 3, 3), (Both{LaneStep::kDone, LaneStep::kDone}));
  // The receiver has read the last chunk: the sender may never fill its slot.
  EXPECT_EQ(step({3, 3}, 2, 3), (Both{LaneStep::kDone, LaneStep::kDone}));
}

TEST(Lane, CarriesAllWhereTheReceiverMayNotRead) {
  Message message(11 * kChunk + 3);
  auto receiver = receiver_of(message);
  while (go_on(receiver, false) != LaneStep::kDone) {
    while (message.sender.fill()) EXPECT_EQ(receiver.next(false), LaneStep::kTake);
    EXPECT_FALSE(message.sender.can_fill());
  }
  EXPECT_EQ(message.got, message.data);
}

TEST(Lane, TheSenderFillsItBeforeAnybodyTakes) {
  Message message(11 * kChunk);
  for (uint32_t slot = 0; slot < Lane::kSlots; ++slot) EXPECT_TRUE(message.sender.fill());
  EXPECT_FALSE(message.sender.fill());
  auto receiver = receiver_of(message);
  EXPECT_EQ(receiver.next(true), LaneStep::kTake);
  receiver.take();
  EXPECT_TRUE(message.sender.can_fill());
}

TEST(Lane, ASenderThatStandsStillIsReadOut) {
  for (const bool has_begun : {false, true}) {
    Message message(11 * kChunk + 3);
    EXPECT_TRUE(message.sender.fill());
    if (has_begun) message.begin_one();
    auto receiver = receiver_of(message);
    EXPECT_EQ(go_on(receiver, true), LaneStep::kDone);
    EXPECT_EQ(message.got, message.data);
    EXPECT_FALSE(message.sender.can_fill());
  }
}

TEST(Lane, WhatTheKernelDoesNotReadIsTheSendersAgain) {
  Message message(11 * kChunk);
  LaneReceiver receiver(message.lane, message.slots.data(), {::getpid(), 0}, message.got.data(),
                        11 * kChunk);
  EXPECT_EQ(receiver.next(true), LaneStep::kReadBack);
  EXPECT_EQ(receiver.read(LaneStep::kReadBack), LaneReceiver::Read::kRefused);
  EXPECT_EQ(Ends::unpacked(message.lane.ends), (Ends{0, 11}));
  while (go_on(receiver, false) != LaneStep::kDone) EXPECT_TRUE(message.sender.fill());
  EXPECT_EQ(message.got, message.data);
}

TEST(Lane, NothingIsReadOfWhatTheSenderWasFasterWith) {
  Message message(kChunk);
  auto receiver = receiver_of(message);
  ASSERT_EQ(receiver.next(true), LaneStep::kReadBack);
  ASSERT_TRUE(message.sender.fill());  // between the receiver's look and its claim
  EXPECT_EQ(receiver.read(LaneStep::kReadBack), LaneReceiver::Read::kNothing);
  EXPECT_EQ(go_on(receiver, true), LaneStep::kDone);
  EXPECT_EQ(message.got, message.data);
}

TEST(Lane, EveryOrderOfTheTwoGivesTheSameBytes) {
  std::mt19937 random(5);
  for (int turn = 0; turn < 100; ++turn) {
    Message message(1 + static_cast<int64_t>(random() % (9 * kChunk)));
    auto receiver = receiver_of(message);
    const bool may_read = turn % 3 != 0;
    for (auto step = receiver.next(may_read); step != LaneStep::kDone;
         step = receiver.next(may_read)) {
      if (step == LaneStep::kWait || random() % 2 == 0) {
        message.sender.fill();
      } else if (step == LaneStep::kTake) {
        receiver.take();
      } else {
        ASSERT_EQ(receiver.read(step), LaneReceiver::Read::kDone);
      }
    }
    ASSERT_EQ(message.got, message.data) << message.data.size() << " bytes";
  }
}

TEST(Lane, BothEndsAtOnce) {
  for (int turn = 0; turn < 8; ++turn) {
    Message message(16 * kChunk - turn);
    auto receiver = receiver_of(message);
    std::atomic<bool> is_done = false;
    std::thread sender([&] {
      while (!is_done) {
        if (!message.sender.fill()) std::this_thread::yield();
      }
    });
    while (go_on(receiver, turn % 2 == 0) != LaneStep::kDone) std::this_thread::yield();
    is_done = true;
    sender.join();
    ASSERT_EQ(message.got, message.data);
  }
}

}  // namespace
}  // namespace lockstep::shm
