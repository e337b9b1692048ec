#include "lockstep/base/env.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "lockstep/error.h"

namespace lockstep {
namespace {

constexpr const char* kName = "LOCKSTEP_TEST_VARIABLE";

class EnvTest : public ::testing::Test {
 protected:
  ~EnvTest() override { ::unsetenv(kName); }
  static void put(const char* text) { ::setenv(kName, text, 1); }
};

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST_F(EnvTest, EmptyIsUnset) {
  EXPECT_EQ(env(kName), std::nullopt);
  put("");
  EXPECT_EQ(env(kName), std::nullopt);
  EXPECT_EQ(env_or(kName, "else"), "else");
  put("x");
  EXPECT_EQ(env(kName), "x");
  EXPECT_EQ(env_or(kName, "else"), "x");
}

TEST(ParseInt, NumbersKeepToTheirRange) {
  EXPECT_EQ(parse_int("7", 0, 9, kName), 7);
  const auto message = message_of([] { parse_int("10", 0, 9, kName); });
  for (const char* part : {kName, "'10'", "0", "9"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(ParseInt, TakesWholeNumbersOnly) {
  EXPECT_EQ(parse_int("-3", -5, 5, "x"), -3);
  EXPECT_EQ(parse_int("9223372036854775807", 0, INT64_MAX, "x"), INT64_MAX);
  for (const char* text : {"", " 1", "1 ", "1.5", "0x1", "+1", "one", "9223372036854775808"})
    EXPECT_THROW(parse_int(text, -5, INT64_MAX, "x"), Error) << text;
}

TEST(ParseReal, NumbersKeepToTheirRange) {
  EXPECT_EQ(parse_real("0.25", 0, 1, "x"), 0.25);
  EXPECT_EQ(parse_real("1e-2", 0, 1, "x"), 0.01);
  EXPECT_EQ(message_of([] { parse_real("2", 0, 1, "--share"); }),
            "--share: '2' is not a number from 0 to 1");
  for (const char* text : {"", " 1", "1s", "0,5", "nan", "inf", "1e999", "0x1"})
    EXPECT_THROW(parse_real(text, 0, 1e300, "x"), Error) << text;
}

}  // namespace
}  // namespace lockstep
