// The real records, if present: see CMakeLists.txt.

#include <gtest/gtest.h>

#include <array>

#include "lockstep/base/env.h"
#include "lockstep/data/cifar10.h"

namespace lockstep {
namespace {

TEST(RealCifar10, HasEveryClassAboutAsOften) {
  const auto test = Cifar10::load(env_or("LOCKSTEP_TEST_DATA", "") + "/cifar10", Split::kTest);
  ASSERT_GT(test.size(), 0);
  std::array<int64_t, 10> per_class{};
  for (int64_t i = 0; i < test.size(); ++i) ++per_class.at(static_cast<size_t>(test.label(i)));
  for (const int64_t count : per_class) EXPECT_GT(count, test.size() / 20);
}

}  // namespace
}  // namespace lockstep
