// How parts of one's own read their sections.

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "lockstep/train/config/node.h"
#include "lockstep/train/config/own_parts.h"
#include "tests/train/config/configs.h"

namespace lockstep {
namespace {

TEST(OwnPartSections, StayValidWhereTheirParentGetsDefaults) {
  Node root;
  ConfigSection parent(root, "loss");
  Section base = parent.section("base"), other = parent.section("other");
  for (const char* key : {"a", "b", "c", "d", "e", "f", "g"}) {
    int64_t value = 1;
    parent.read(key, value, {0, 9}, "a number");
  }
  double gamma = 2, beta = 0.5;
  base.read("gamma", gamma, {0, 9}, "of base");
  other.read("beta", beta, {0, 9}, "of the other");
  ASSERT_NE(root.find("base")->find("gamma"), nullptr);
  EXPECT_EQ(root.find("base")->find("gamma")->text, "2.0");
  ASSERT_NE(root.find("other")->find("beta"), nullptr);
  EXPECT_EQ(root.find("other")->find("beta")->text, "0.5");
}

TEST(OwnPartSections, OtherExceptionsOfAReaderHaveItsNameAndPlace) {
  const Registry<Schedule> before = schedules();
  schedules().add({"tabled", "of a table",
                   [](Section&) -> Schedule { throw std::runtime_error("my table is missing"); }});
  EXPECT_EQ(fault_in(kPictures, {"scheduler={scheduler: tabled}"}),
            "-o scheduler={scheduler: tabled}: scheduler.scheduler 'tabled' cannot read its "
            "settings: my table is missing");
  EXPECT_NO_THROW(list_parts("losses")) << "of another kind";
  schedules() = before;
}

}  // namespace
}  // namespace lockstep
