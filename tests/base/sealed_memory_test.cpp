#include "lockstep/base/sealed_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep {
namespace {

TEST(SealedMemory, HasItsPagesAndKeepsItsSize) {
  const UniqueFd memory = make_sealed_memory("lockstep-test", 8192);
  ASSERT_TRUE(memory);
  struct stat status {};
  ASSERT_EQ(::fstat(memory.get(), &status), 0);
  EXPECT_EQ(status.st_size, 8192);
  EXPECT_EQ(status.st_blocks, 16) << "units of 512 bytes";
  EXPECT_EQ(::fcntl(memory.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::ftruncate(memory.get(), 4096), -1);
  EXPECT_EQ(::ftruncate(memory.get(), 16384), -1);
  EXPECT_EQ(::pwrite(memory.get(), "x", 1, 0), 1);
  EXPECT_TRUE(make_sealed_memory("lockstep-test", 0)) << "of an agent without workers";
}

TEST(SealedMemory, IsKnownByItsSealsAndSize) {
  const UniqueFd memory = make_sealed_memory("lockstep-test", 8192);
  EXPECT_TRUE(is_sealed_memory(memory.get(), 8192));
  EXPECT_FALSE(is_sealed_memory(memory.get(), 8193));
  EXPECT_FALSE(is_sealed_memory(-1, 0));
  const UniqueFd open(::memfd_create("lockstep-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open.get(), 8192), 0);
  for (const int seals : {0, F_SEAL_GROW, F_SEAL_SHRINK}) {
    ASSERT_EQ(::fcntl(open.get(), F_ADD_SEALS, seals), 0);
    EXPECT_FALSE(is_sealed_memory(open.get(), 8192)) << seals;
  }
  ASSERT_EQ(::fcntl(open.get(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  EXPECT_TRUE(is_sealed_memory(open.get(), 8192));
}

}  // namespace
}  // namespace lockstep
