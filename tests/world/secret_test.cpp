#include "lockstep/world/secret.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "lockstep/base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

void write_secret(const std::filesystem::path& path, const std::string& text, unsigned mode) {
  write_file_atomically(path, text);
  std::filesystem::permissions(path, std::filesystem::perms(mode));
}

TEST(SecretFile, HoldsOneLine) {
  const TempFolder folder;
  write_secret(folder / "s", "abc\n", 0600);
  EXPECT_EQ(read_secret_file(folder / "s"), "abc");
  write_secret(folder / "s", "abc", 0400);
  EXPECT_EQ(read_secret_file(folder / "s"), "abc");
  for (const char* bad : {"", "\n", "a\nb\n"}) {
    write_secret(folder / "s", bad, 0600);
    EXPECT_EQ(error_of([&] { read_secret_file(folder / "s"); }).code(),
              ErrorCode::kInvalidArgument);
  }
}

TEST(SecretFile, IsRefusedWhereOthersCanReadIt) {
  const TempFolder folder;
  for (const unsigned mode : {0644U, 0640U, 0620U, 0604U}) {
    write_secret(folder / "s", "abc", mode);
    const Error error = error_of([&] { read_secret_file(folder / "s"); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("chmod 600"), std::string::npos);
  }
  EXPECT_EQ(error_of([&] { read_secret_file(folder / "none"); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of([&] { read_secret_file(folder.path()); }).code(), ErrorCode::kInvalidArgument);
}

TEST(SecretFile, IsTakenAsKubernetesMountsIt) {
  const TempFolder folder;
  const std::string path = folder / "s";
  write_secret(path, "abc", 0440);
  EXPECT_EQ(read_secret_file(path), "abc");
}

TEST(SecretFile, OfAnotherGroupIsRefusedAsRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "root may give files away; scripts/test.sh sees to it";
  const TempFolder folder;
  const std::string path = folder / "s";
  write_secret(path, "abc", 0440);
  ASSERT_EQ(::chown(path.c_str(), 0, 54321), 0);
  EXPECT_EQ(error_of([&] { read_secret_file(path); }).code(), ErrorCode::kInvalidArgument)
      << "of a group that is not one's own";
}

/// The exit code of a user of group 54321 that reads root's file.
int exit_code_of_reader(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setegid(54321) != 0 || ::seteuid(65534) != 0) ::_exit(9);
    try {
      ::_exit(read_secret_file(path) == "abc" ? 0 : 1);
    } catch (const Error& error) {
      ::_exit(std::string(error.what()).find("defaultMode: 0440") != std::string::npos ? 2 : 3);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(SecretFile, OfRootForAnOwnGroupIsTaken) {
  if (::geteuid() != 0) return;  // only root may give files away
  const TempFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  const std::string path = folder / "s";
  for (const auto& [mode, code] : {std::pair{0440U, 0},
                                   {0640U, 0},
                                   {0040U, 0},
                                   {0660U, 2},
                                   {0644U, 2},
                                   {0444U, 2},
                                   {0650U, 2}}) {
    write_secret(path, "abc", mode);
    ASSERT_EQ(::chown(path.c_str(), 0, 54321), 0);
    EXPECT_EQ(exit_code_of_reader(path), code) << std::oct << mode;
  }
}

TEST(SecretOfAgents, OneThatCanBeGuessedIsWarnedOf) {
  const auto said = [](const std::string& secret, const std::string& address) {
    ::testing::internal::CaptureStderr();
    check_secret_of_agents(secret, address, "--master_addr");
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(said("a", "10.1.1.1").find("the secret has 1 bytes"), std::string::npos);
  EXPECT_EQ(said(std::string(16, 'a'), "10.1.1.1"), "");
  EXPECT_EQ(said("a", "127.0.0.1"), "");
}

TEST(SecretFile, VariableWinsOverFile) {
  const TempFolder folder;
  write_secret(folder / "s", "of the file", 0600);
  ::setenv("LOCKSTEP_SECRET_FILE", (folder / "s").c_str(), 1);
  EXPECT_EQ(secret_of_environment(), "of the file");
  ::setenv("LOCKSTEP_SECRET", "of the variable", 1);
  EXPECT_EQ(secret_of_environment(), "of the variable");
  ::unsetenv("LOCKSTEP_SECRET");
  ::unsetenv("LOCKSTEP_SECRET_FILE");
  EXPECT_EQ(secret_of_environment(), "");
}

TEST(SecretSource, IsNoVariableThatForbidsToDoWithoutOne) {
  ::unsetenv("LOCKSTEP_SECRET");
  ::setenv("LOCKSTEP_INSECURE", "0", 1);
  EXPECT_EQ(secret_source(), "nowhere: neither LOCKSTEP_SECRET nor LOCKSTEP_SECRET_FILE is set");
  ::setenv("LOCKSTEP_INSECURE", "1", 1);
  EXPECT_EQ(secret_source(), "nowhere (LOCKSTEP_INSECURE)");
  ::unsetenv("LOCKSTEP_INSECURE");
}

TEST(SecretOfAgents, IsKnownToAllWhereTheyAreToDoWithoutOne) {
  ::unsetenv("LOCKSTEP_SECRET");
  EXPECT_EQ(secret_of_agents(Wire::kPlain), "");
  ::setenv("LOCKSTEP_INSECURE", "1", 1);
  EXPECT_NE(secret_of_agents(Wire::kPlain), "");
  EXPECT_EQ(error_of([] { secret_of_agents(Wire::kTls); }).code(), ErrorCode::kInvalidArgument);
  ::setenv("LOCKSTEP_SECRET", "real", 1);
  EXPECT_EQ(secret_of_agents(Wire::kTls), "real");
  ::setenv("LOCKSTEP_INSECURE", "yes", 1);
  EXPECT_EQ(error_of([] { secret_of_agents(Wire::kPlain); }).code(), ErrorCode::kInvalidArgument);
  ::unsetenv("LOCKSTEP_INSECURE");
  ::unsetenv("LOCKSTEP_SECRET");
}

}  // namespace
}  // namespace lockstep
