// What the agent's loop hears of what the thread that takes part in the job saw.

#include "lockstep/launch/rendezvous/standing.h"

#include <gtest/gtest.h>

namespace lockstep::testing {
namespace {

JobEnd end_by_rank_one() {
  Failure failure;
  failure.host = "hosta";
  failure.rank = 1;
  failure.status.code = 3;
  return {failure, ""};
}

TEST(Standing, AJobThatEndsBeforeItsPlanIsFetchedEndsTheWorkersOfThatPlan) {
  Standing standing("id", Offer{});
  JobPlan plan;
  plan.generation = 1;
  standing.take_plan(plan);
  standing.end(end_by_rank_one());
  EXPECT_EQ(standing.wait_for_plan().generation, 1);
  const JobNews news = standing.news();
  ASSERT_TRUE(news.end && news.end->failure);
  EXPECT_EQ(news.end->failure->status.code, 3);
}

TEST(Standing, AnEndIsNotForgottenForTheNextPlan) {
  Standing standing("id", Offer{});
  standing.take_plan(JobPlan{});
  standing.wait_for_plan();
  standing.take_plan(JobPlan{});
  standing.end(end_by_rank_one());
  EXPECT_TRUE(standing.next());
  EXPECT_TRUE(standing.news().end);
}

TEST(Standing, OneThatNeverHadAPartIsToldWhatEndedTheJob) {
  Standing standing("id", Offer{});
  standing.end(end_by_rank_one());
  try {
    standing.wait_for_plan();
    ADD_FAILURE() << "there is no plan";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("without this node: rank 1 (hosta) failed: exit code 3"), std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace lockstep::testing
