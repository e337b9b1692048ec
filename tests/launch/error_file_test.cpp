#include "lockstep/launch/agent/error_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

constexpr char kPython[] =
    R"({"message": {"message": "ValueError: bad\nbatch", "extraInfo": {"timestamp": "7"}}})";

TEST(ErrorFile, BothFormatsHaveAMessage) {
  EXPECT_EQ(error_message(kPython), "ValueError: bad\nbatch");
  EXPECT_EQ(error_message(R"({"message": "out of memory", "timestamp": 7})"), "out of memory");
}

TEST(ErrorFile, WhateverElseIsInItHasNone) {
  for (const char* text : {"", "{", "[]", "7", "{}", R"({"message": 7})", R"({"message": {}})",
                           R"({"message": ""})", R"({"message": {"message": 3}})", "\xff\xfe"}) {
    EXPECT_FALSE(error_message(text)) << text;
  }
}

TEST(ErrorFile, LongMessagesAreCut) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "line\\n";
  EXPECT_EQ(error_message("{\"message\": \"" + lines + "\"}", 2), "line\nline\n...");
}

TEST(ErrorFile, TheCopyHasTheExitCode) {
  EXPECT_NE(with_error_code(kPython, 3).find("\"errorCode\":3"), std::string::npos);
  EXPECT_EQ(with_error_code(R"({"message": "m"})", 3), R"({"message": "m"})");
  const TempFolder folder;
  const std::string from = (folder / "from").string();
  const std::string to = (folder / "to").string();
  std::ofstream(from) << kPython;
  copy_error_file(from, to, 9);
  EXPECT_EQ(read_error_message(to), "ValueError: bad\nbatch");
  copy_error_file((folder / "none").string(), to, 9);
  EXPECT_TRUE(read_error_message(to)) << "no file, no copy";
  EXPECT_FALSE(read_error_message((folder / "none").string()));
}

}  // namespace
}  // namespace lockstep
