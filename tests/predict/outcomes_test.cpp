#include "lockstep/predict/outcomes.h"

#include "lockstep/store/memory/memory_store.h"
#include "tests/data/errors.h"

namespace lockstep {
namespace {

World world_of(int rank, int size, const std::shared_ptr<Store>& store) {
  World world;
  world.rank = rank;
  world.size = size;
  world.store = store;
  return world;
}

std::vector<std::string> texts(const std::vector<Outcome>& outcomes) {
  std::vector<std::string> all;
  for (const Outcome& one : outcomes) all.push_back((one.good ? "" : "bad ") + one.text);
  return all;
}

TEST(Outcomes, ComeToRankZeroInThePicturesOrder) {
  const auto store = make_memory_store();
  const World zero = world_of(0, 3, store);
  const World one = world_of(1, 3, store);
  const World two = world_of(2, 3, store);
  size_t arrived = 0;
  const auto count = [&](const Outcome&) { ++arrived; };
  const auto never = [](const Outcome&) { ADD_FAILURE(); };
  Outcomes first(zero, 7, count);
  Outcomes second(one, 7, never);
  Outcomes third(two, 7, never);

  second.add(1, {true, "p1"});
  first.add(0, {true, "p0"});
  EXPECT_EQ(arrived, 2U);  // what is there is taken at once
  third.add(2, {false, "why"});
  third.add(5, {true, ""});
  second.add(4, {true, "p4"});
  first.add(3, {true, "p3"});
  first.add(6, {true, "p6"});
  EXPECT_EQ(arrived, 7U);

  EXPECT_TRUE(second.finish().empty());
  EXPECT_TRUE(third.finish().empty());
  EXPECT_EQ(texts(first.finish()),
            (std::vector<std::string>{"p0", "p1", "bad why", "p3", "p4", "", "p6"}));
  EXPECT_FALSE(store->try_get("predict/1", Deadline::after(std::chrono::seconds(5))));
}

TEST(Outcomes, MoreRanksThanPictures) {
  const auto store = make_memory_store();
  const World zero = world_of(0, 4, store);
  Outcomes first(zero, 1, [](const Outcome&) {});
  first.add(0, {true, "p0"});
  EXPECT_EQ(texts(first.finish()), (std::vector<std::string>{"p0"}));
}

TEST(Outcomes, NamesTheRankThatDoesNotAnswer) {
  const auto store = make_memory_store();
  const World zero = world_of(0, 2, store);
  Outcomes first(zero, 3, [](const Outcome&) {});
  first.add(0, {true, "p0"});
  const auto text =
      testing::error_of(ErrorCode::kTimeout, [&] { first.finish(std::chrono::milliseconds(1)); });
  EXPECT_NE(text.find("rank 1 has given no result for picture 2 of 3"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep
