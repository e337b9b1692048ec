// `lockstep doctor backends` as a user runs it.

#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/comm/group/backends.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

struct Ran {
  int status;
  std::string text;
};

Ran doctor(const std::string& args) {
  const auto command = env_or("LOCKSTEP_BIN_DIR", ".") + "/lockstep doctor " + args + " 2>&1";
  FILE* const pipe = ::popen(command.c_str(), "r");
  std::string text;
  char part[4096];
  while (const size_t got = std::fread(part, 1, sizeof part, pipe)) text.append(part, got);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

TEST(DoctorBackends, ListsEachWithTheReasonWhyItCannotRun) {
  const auto ran = doctor("backends --json");
  ASSERT_EQ(ran.status, 0) << ran.text;
  const auto list = nlohmann::json::parse(ran.text);
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list[0].at("name"), "native");
  EXPECT_TRUE(list[0].at("usable"));
  EXPECT_EQ(list[1].at("name"), "mpi");
  EXPECT_FALSE(list[1].at("usable"));
  EXPECT_EQ(list[2].at("name"), "c10d:gloo");
  EXPECT_EQ(list[3].at("name"), "c10d:nccl");
  EXPECT_FALSE(list[3].at("usable"));
  EXPECT_EQ(list[4].at("name"), "hccl");
  EXPECT_FALSE(list[4].at("usable"));
  for (const auto& row : list) {
    EXPECT_EQ(row.at("usable").get<bool>() && row.at("built_in").get<bool>(),
              row.at("why_not").get<std::string>().empty())
        << row;
  }
}

TEST(Backends, LibtorchsAreKnownToProgramsWithoutIt) {
  for (const std::string name : {"c10d:gloo", "c10d:nccl", "hccl"}) {
    try {
      choose_backend(name, GroupSpec{});
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find("does not link"), std::string::npos) << error.what();
    }
  }
}

TEST(Backends, TheTableHasWhichOnesSumInOneOrder) {
  EXPECT_TRUE(sums_in_one_order("auto"));
  EXPECT_TRUE(sums_in_one_order("native"));
  EXPECT_FALSE(sums_in_one_order("mpi"));
  EXPECT_FALSE(sums_in_one_order("nativ"));
}

TEST(Backends, AutoSumsInOneOrderIfEachThatItMayTakeDoes) {
  const auto table = [](bool of_first, bool of_devices) {
    std::vector<Backend> rows(3);
    rows[0].name = "first";
    rows[0].one_order = of_first;
    rows[1].name = "second";  // "auto" takes it only if the first one cannot run
    rows[2].name = "devices";
    rows[2].for_devices = true;
    rows[2].one_order = of_devices;
    return rows;
  };
  EXPECT_TRUE(sums_in_one_order("auto", table(true, true)));
  EXPECT_FALSE(sums_in_one_order("auto", table(true, false)));
  EXPECT_FALSE(sums_in_one_order("auto", table(false, true)));
  EXPECT_TRUE(sums_in_one_order("first", table(true, false)));
  EXPECT_FALSE(sums_in_one_order("second", table(true, true)));
}

TEST(DoctorBackends, PrintsATable) {
  const auto ran = doctor("backends");
  EXPECT_EQ(ran.status, 0);
  EXPECT_NE(ran.text.find("back end    built in   runs here"), std::string::npos) << ran.text;
  EXPECT_NE(ran.text.find("\nnative      yes        yes"), std::string::npos) << ran.text;
}

TEST(DoctorBackends, BadArgumentsExitWithTwo) {
  EXPECT_EQ(doctor("backends --jsn").status, 2);
  EXPECT_NE(doctor("backends --jsn").text.find("did you mean '--json'"), std::string::npos);
  EXPECT_EQ(doctor("backend").status, 2);
  EXPECT_EQ(doctor("--host h1").status, 2);
}

}  // namespace
}  // namespace lockstep
