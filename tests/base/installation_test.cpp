#include "lockstep/base/installation.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

TEST(Installation, ProgramsOfOnesOwnFindThatOfTheCommandInPath) {
  const TempFolder root;
  const fs::path path = fs::canonical(root.path());
  for (const char* folder : {"own/bin", "prefix/bin", "links", "plain"}) {
    fs::create_directories(path / folder);
  }
  std::ofstream(path / "prefix/bin/lockstep") << "#!/bin/sh\n";
  fs::permissions(path / "prefix/bin/lockstep", fs::perms::owner_all);
  fs::create_symlink("../prefix/bin/lockstep", path / "links/lockstep");
  std::ofstream(path / "plain/lockstep") << "no program\n";
  fs::permissions(path / "plain/lockstep", fs::perms::owner_read);

  const auto own = (path / "own/bin").string();
  const auto plain = (path / "plain").string(), links = (path / "links").string();
  using Folders = std::vector<fs::path>;
  EXPECT_EQ(installed_program_folders(own, plain + "::" + links),
            (Folders{path / "own/bin", path / "prefix/bin"}));
  EXPECT_EQ(installed_program_folders(own, plain), (Folders{path / "own/bin"}));
  EXPECT_EQ(installed_program_folders((path / "prefix/bin").string(), links),
            (Folders{path / "prefix/bin"}));
  EXPECT_EQ(installed_program_folders("", links), (Folders{path / "prefix/bin"}));
  EXPECT_EQ(installed_program_folders("", ""), Folders());
}

}  // namespace
}  // namespace lockstep
