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

/// The outcomes that rank 0 receives, in order.
struct Heard {
  std::vector<std::string> texts;
  std::function<void(const Outcome&)> listener() {
    return [this](const Outcome& one) {
      texts.push_back((one.good ? "" : "bad ") + one.text);
      if (one.usable_regions > 0) texts.push_back(std::to_string(one.usable_regions) + " regions");
      for (const auto& fault : one.faults) texts.push_back("fault " + fault);
    };
  }
};

using Texts = std::vector<std::string>;

TEST(Outcomes, ComeToRankZeroInThePicturesOrderAsSoonAsTheyCan) {
  const auto store = make_memory_store();
  const World zero = world_of(0, 3, store);
  const World one = world_of(1, 3, store);
  const World two = world_of(2, 3, store);
  Heard heard;
  const auto never = [](const Outcome&) { ADD_FAILURE(); };
  Outcomes first(zero, 7, heard.listener());
  Outcomes second(one, 7, never);
  Outcomes third(two, 7, never);

  second.add(1, {true, "p1"});
  first.add(0, {true, "p0"});
  EXPECT_EQ(heard.texts, (Texts{"p0", "p1"}));  // available ones are taken at once
  third.add(5, {true, ""});                     // before its second
  second.add(4, {true, "p4"});
  first.add(6, {true, "p6"});
  first.add(3, {true, "p3"});
  EXPECT_EQ(heard.texts, (Texts{"p0", "p1"}));  // picture 2 is unknown
  third.add(2, {false, "why"});
  second.finish();
  third.finish();
  first.finish();
  EXPECT_EQ(heard.texts, (Texts{"p0", "p1", "bad why", "p3", "p4", "", "p6"}));
  EXPECT_FALSE(store->try_get("predict/1", Deadline::after(std::chrono::seconds(5))));
}

TEST(Outcomes, ComeWithTheFaultsOfTheirRegions) {
  const auto store = make_memory_store();
  const World zero = world_of(0, 2, store);
  const World one = world_of(1, 2, store);
  Heard heard;
  Outcomes first(zero, 4, heard.listener());
  Outcomes second(one, 4, [](const Outcome&) { ADD_FAILURE(); });
  second.add(1, {true, "p1", 12, {"why", "in two\nlines"}});
  second.add(3, {true, "", 0, {"all"}});
  first.add(0, {true, "p0", 1, {"here"}});
  first.add(2, {false, "p2"});
  second.finish();
  first.finish();
  EXPECT_EQ(heard.texts, (Texts{"p0", "1 regions", "fault here", "p1", "12 regions", "fault why",
                                "fault in two\nlines", "bad p2", "", "fault all"}));
}

TEST(Outcomes, MoreRanksThanPictures) {
  const auto store = make_memory_store();
  const World zero = world_of(0, 4, store);
  Heard heard;
  Outcomes first(zero, 1, heard.listener());
  first.add(0, {true, "p0"});
  first.finish();
  EXPECT_EQ(heard.texts, Texts{"p0"});
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
