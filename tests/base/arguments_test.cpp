#include "lockstep/base/arguments.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Arguments, AShortOptionMayHaveItsValueBehindAnEqualsSign) {
  const char* argv[] = {"program", "-c=a.yaml", "-o", "x=-1", "--opt=y=2", "-1=2", "-"};
  const std::vector<std::string> expected = {"-",  "-1=2",   "--opt=y=2", "x=-1",
                                             "-o", "a.yaml", "-c"};
  EXPECT_EQ(reversed_arguments(7, argv), expected);
  EXPECT_TRUE(reversed_arguments(1, argv).empty());
}

}  // namespace
}  // namespace lockstep
