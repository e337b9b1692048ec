#include "lockstep/launch/agent/output/worker_lines.h"

#include <gtest/gtest.h>

#include "lockstep/launch/agent/output/line_folder.h"
#include "lockstep/launch/process/line_prefix.h"
#include "lockstep/launch/process/line_splitter.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
const LineRate::Time kEpoch = LineRate::Time{} + 1h;

TEST(LineRate, AsManyAtOnceAsASecondAllows) {
  LineRate rate(10);
  int shown = 0;
  for (int i = 0; i < 25; ++i) shown += rate.line(kEpoch).show ? 1 : 0;
  EXPECT_EQ(shown, 10);
  const auto later = rate.line(kEpoch + 500ms);
  EXPECT_TRUE(later.show);
  EXPECT_EQ(later.dropped, 15);
  EXPECT_EQ(rate.line(kEpoch + 500ms).dropped, 0);
}

TEST(LineRate, WhatIsDroppedIsToldInBatches) {
  LineRate rate(100);
  int told = 0;
  for (int i = 0; i < 2000; ++i) told += rate.line(kEpoch + i * 1ms).dropped > 0 ? 1 : 0;
  EXPECT_GT(told, 5);
  EXPECT_LT(told, 40) << "not between any two lines";
}

TEST(LineRate, ZeroIsNoLimit) {
  LineRate rate(0);
  for (int i = 0; i < 100000; ++i) ASSERT_TRUE(rate.line(kEpoch).show);
  EXPECT_EQ(rate.take_dropped(), 0);
}

TEST(FailureEcho, OthersNeedNotSayTheSameError) {
  const FailureEcho echo(1, {"some warning", "prog: error: no finite loss"});
  EXPECT_TRUE(echo.repeats(0, 2, "prog: error: no finite loss"));
  EXPECT_FALSE(echo.repeats(1, 2, "prog: error: no finite loss")) << "it is its own";
  EXPECT_FALSE(echo.repeats(0, 1, "prog: error: no finite loss")) << "of another stream";
  EXPECT_FALSE(echo.repeats(0, 2, "some warning"));
  EXPECT_FALSE(FailureEcho().repeats(0, 2, ""));
  EXPECT_FALSE(FailureEcho(1, {"Traceback:", "ValueError"}).repeats(0, 2, "ValueError"))
      << "the last line of a text";
}

TEST(RecentText, KnowsWhatIsStillOnTheScreen) {
  RecentText text;
  EXPECT_FALSE(text.has({"one"}));
  text.add("[0] none\n[1] one\n[0] between\n[1] two\n");
  EXPECT_TRUE(text.has({"one", "two"}));
  EXPECT_FALSE(text.has({"two", "one"}));
  EXPECT_FALSE(text.has({"on"})) << "a part of a line";
  EXPECT_FALSE(text.has({"ne"}));
  EXPECT_FALSE(text.has({}));
  EXPECT_FALSE(text.has({"", " "}));
  EXPECT_TRUE(text.has({"one", "", "two"}));
  for (int i = 0; i < RecentText::kLines - 3; ++i) text.add("[0] more\n");
  EXPECT_TRUE(text.has({"one", "two"}));
  text.add("[0] more\n[0] more\n");
  EXPECT_FALSE(text.has({"one", "two"}));
  for (int i = 0; i < 10; ++i) text.add(std::string(50 << 10, 'x') + "\n");
  text.add("end");
  EXPECT_TRUE(text.has({"end"}));
}

TEST(LinePrefix, NamesRanksAndHosts) {
  PrefixStyle style;
  style.world_size = 16;
  EXPECT_EQ(line_prefix(style, {3}), "[3]  ");
  EXPECT_EQ(line_prefix(style, {12}), "[12] ");
  EXPECT_EQ(line_prefix(style, {0, 1, 2, 3}), "[0-3] ");
  style.first_rank = 8;
  style.host = "a1";
  style.host_width = 4;
  EXPECT_EQ(line_prefix(style, {0}), "[a1:8]    ");
  EXPECT_EQ(line_prefix(style, {0, 2, 3, 4, 6}), "[a1:8,10-12,14] ");
}

TEST(LinePrefix, TorchrunsTemplate) {
  PrefixStyle style;
  style.first_rank = 4;
  style.role = "trainer";
  style.pattern = "[${role_name}${local_rank}|${rank}]:";
  EXPECT_EQ(line_prefix(style, {1}), "[trainer1|5]:");
}

TEST(LinePrefix, ColourOnlyWhereItIsWanted) {
  PrefixStyle style;
  style.color = true;
  const auto colored = line_prefix(style, {0});
  EXPECT_EQ(colored.substr(0, 2), "\x1b[");
  EXPECT_NE(colored.find("[0] \x1b[0m"), std::string::npos);
  EXPECT_TRUE(wants_color(true, nullptr, "xterm"));
  EXPECT_TRUE(wants_color(true, "", "xterm"));
  EXPECT_FALSE(wants_color(true, "1", "xterm"));
  EXPECT_FALSE(wants_color(false, nullptr, "xterm"));
  EXPECT_FALSE(wants_color(true, nullptr, "dumb"));
  EXPECT_FALSE(wants_color(true, nullptr, nullptr));
}

std::vector<std::string> texts(const std::vector<UnfinishedLines::Line>& lines) {
  std::vector<std::string> all;
  for (const auto& line : lines) all.push_back(line.text);
  return all;
}
using Texts = std::vector<std::string>;

TEST(UnfinishedLines, AreShownOnceTheyHaveStoodForAWhile) {
  UnfinishedLines lines({30s, 30s});
  lines.set(0, 1, "Na", false, kEpoch);
  lines.set(0, 1, "Name?", false, kEpoch + 10ms);
  EXPECT_EQ(lines.due(), kEpoch + 200ms);
  EXPECT_EQ(texts(lines.pass_time(kEpoch + 199ms)), Texts{});
  EXPECT_EQ(texts(lines.pass_time(kEpoch + 200ms)), Texts{"Name?"});
  EXPECT_FALSE(lines.due());
  lines.set(0, 1, "", false, kEpoch + 1s);
  EXPECT_FALSE(lines.first_shown());
}

TEST(UnfinishedLines, EachStandsFromWhenItBegan) {
  UnfinishedLines lines({30s, 30s});
  lines.set(0, 1, "one, ha", false, kEpoch);
  lines.set(0, 1, "two, ha", false, kEpoch + 190ms);
  EXPECT_EQ(texts(lines.pass_time(kEpoch + 389ms)), Texts{});
  EXPECT_EQ(texts(lines.pass_time(kEpoch + 390ms)), Texts{"two, ha"});
}

// As if the console were full: the rest of the line waits in its pipe.
TEST(UnfinishedLines, HaveNotStoodWhileNobodyReadsThem) {
  UnfinishedLines lines({30s, 30s});
  lines.set(0, 1, "half a li", false, kEpoch);
  lines.hold(kEpoch + 900ms);
  EXPECT_EQ(texts(lines.pass_time(kEpoch + 1s)), Texts{});
  EXPECT_EQ(lines.due(), kEpoch + 1100ms);
  EXPECT_EQ(texts(lines.pass_time(kEpoch + 1100ms)), Texts{"half a li"});
}

TEST(UnfinishedLines, ABarIsShownAgainInItsLastState) {
  UnfinishedLines lines({30s, 1s});
  for (const int stream : {1, 2}) lines.set(0, stream, "10%", true, kEpoch);
  EXPECT_EQ(texts(lines.pass_time(kEpoch + 200ms)), (Texts{"10%", "10%"}));
  for (int i = 11; i < 20; ++i) {
    for (const int stream : {1, 2})
      lines.set(0, stream, std::to_string(i) + "%", true, kEpoch + 500ms);
  }
  EXPECT_EQ(lines.due(), kEpoch + 1200ms);
  EXPECT_EQ(texts(lines.pass_time(kEpoch + 2s)), Texts{"19%"});
  EXPECT_EQ(lines.due(), kEpoch + 30200ms);
  EXPECT_EQ(texts(lines.pass_time(kEpoch + 31s)), Texts{"19%"});
}

TEST(UnfinishedLines, TheFootIsTheFirstRanks) {
  UnfinishedLines lines({200ms, 200ms});
  lines.set(3, 2, "three", true, kEpoch);
  lines.pass_time(kEpoch + 200ms);
  lines.set(1, 2, "one", true, kEpoch + 200ms);
  EXPECT_EQ(lines.first_shown()->text, "three") << "the other has just begun";
  lines.pass_time(kEpoch + 400ms);
  EXPECT_EQ(lines.first_shown()->text, "one");
}

TEST(Fitting, LettersCountAndSequencesDoNot) {
  EXPECT_EQ(fitting("short", 10), "short");
  EXPECT_EQ(fitting("\x1b[31mred\x1b[0m", 3), "\x1b[31mred\x1b[0m");
  EXPECT_EQ(fitting("\u2501\u2501\u2501", 2), "\u2501\u2501\x1b[0m");
}

TEST(CompactList, JoinsRunsOfThree) {
  EXPECT_EQ(compact_list({0}), "0");
  EXPECT_EQ(compact_list({0, 1}), "0,1");
  EXPECT_EQ(compact_list({0, 1, 2}), "0-2");
  EXPECT_EQ(compact_list({0, 2, 3, 4, 9, 10}), "0,2-4,9,10");
}

}  // namespace
}  // namespace lockstep
