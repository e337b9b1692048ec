// Messages of verbs about jobs and processes that they cannot show.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/launch/launched.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// As a user other than root, which owns process 1.
Words as_nobody(const std::string& program, const Words& words) {
  Words all = {program};
  if (::geteuid() == 0) {
    all = {"/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program};
  }
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

class Unfound : public ::testing::Test {
 protected:
  /// In a place that any user may read.
  Unfound() {
    fs::permissions(folder_.path(), fs::perms(0755));
    fs::copy_file(built_program("lockstep"), folder_ / "lockstep");
  }
  std::string refused(const Words& words, std::map<std::string, std::string> variables) {
    // That user may not read the suppressions below root's home, and lockstep needs none.
    variables["TSAN_OPTIONS"] = "";
    Launched verb(as_nobody(folder_ / "lockstep", words), variables);
    EXPECT_EQ(verb.wait(), 2) << verb.out() << verb.err();
    return verb.err();
  }
  const TempFolder folder_;
};

TEST_F(Unfound, AnotherUsersProcessIsSaidToBeThat) {
  EXPECT_EQ(refused({"inspect", "1"}, {}),
            "lockstep inspect: error: process 1 belongs to another user\n");
}

TEST_F(Unfound, WhereRunsCannotBeRememberedThatIsSaid) {
  const std::string state = folder_ / "state";
  fs::create_directory(state);
  fs::permissions(state, fs::perms(0555));
  const std::string said = refused({"logs", "night"}, {{"LOCKSTEP_JOBS_DIR", ""},
                                                       {"XDG_RUNTIME_DIR", folder_ / "none"},
                                                       {"XDG_STATE_HOME", state}});
  EXPECT_TRUE(
      has(said, "; runs that are over are not remembered: " + state +
                    "/lockstep/past cannot be written (XDG_STATE_HOME names another place)"))
      << said;
}

}  // namespace
}  // namespace lockstep::testing
