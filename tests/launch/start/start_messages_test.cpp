#include "lockstep/launch/job/start_messages.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

StartSetup some_setup() {
  StartSetup setup;
  setup.secret = "s";
  setup.words = {"-n", "2", "caf\xe9"};
  setup.variables = {{"A", "1"}, {"B\xff", "\xc3\xa4\n"}};
  setup.folder = "/tmp/\x80";
  setup.finds_port = true;
  return setup;
}

TEST(StartMessages, ALineHoldsEachByteAsACharacter) {
  EXPECT_EQ(to_line(some_setup()),
            "{\"finds_port\":true,\"folder\":\"/tmp/\xc2\x80\",\"secret\":\"s\","
            "\"variables\":{\"A\":\"1\",\"B\xc3\xbf\":\"\xc3\x83\xc2\xa4\\n\"},"
            "\"words\":[\"-n\",\"2\",\"caf\xc3\xa9\"]}\n");
  EXPECT_EQ(to_line(StartGo{"host", 29500}), "{\"address\":\"host\",\"port\":29500}\n");
  EXPECT_EQ(to_line(StartHello{"", 0}), "{\"address\":\"\",\"port\":0}\n");
}

TEST(StartMessages, ReadingReturnsTheWrittenMessage) {
  const StartSetup setup = some_setup();
  const StartSetup again = setup_from_line(to_line(setup));
  EXPECT_EQ(again.secret, setup.secret);
  EXPECT_EQ(again.words, setup.words);
  EXPECT_EQ(again.variables, setup.variables);
  EXPECT_EQ(again.folder, setup.folder);
  EXPECT_EQ(again.finds_port, setup.finds_port);
  const StartGo go = go_from_line(to_line(StartGo{"host", 29500}));
  EXPECT_EQ(go.address, "host");
  EXPECT_EQ(go.port, 29500);
  const StartHello hello = hello_from_line(to_line(StartHello{"10.0.0.1", 1}));
  EXPECT_EQ(hello.address, "10.0.0.1");
  EXPECT_EQ(hello.port, 1);
}

TEST(StartMessages, OtherLinesAreRefused) {
  const auto refused = [](const std::string& line) {
    return error_of([&] { setup_from_line(line); }).code() == ErrorCode::kCorrupt;
  };
  const std::string head =
      R"({"finds_port":false,"folder":"/","secret":"","words":[],"variables":)";
  EXPECT_NO_THROW(setup_from_line(head + "{}}"));
  EXPECT_TRUE(refused(head + "[]}"));
  EXPECT_TRUE(refused(head + R"({"A":1}})"));
  EXPECT_TRUE(refused(head + "{\"A\":\"\xe2\x82\xac\"}}")) << "a character that is no byte";
  EXPECT_TRUE(refused("{}"));
  EXPECT_TRUE(refused(""));
  for (const char* line : {R"({"address":"a","port":65536})", R"({"address":"a"})", "[]"}) {
    EXPECT_EQ(error_of([&] { go_from_line(line); }).code(), ErrorCode::kCorrupt) << line;
  }
}

}  // namespace
}  // namespace lockstep
