#include "lockstep/launch/rendezvous/workers_store.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/port_range.h"

namespace lockstep::testing {
namespace {

/// An agent's ports for its workers, of a range with so many.
struct WorkersPorts {
  explicit WorkersPorts(int count) : range(range_text(free_ports(count), count)), variable(range) {}
  const std::string range;
  const RangeVariable variable;
  WorkersStore store{kAllAddresses, "secret", Wire::kPlain, true};
};

// Two of the generation that runs, and two that are announced for the next.
TEST(WorkersStore, TakesFourPorts) {
  WorkersPorts ports(4);
  const int first = ports.store.store_port();
  ports.store.serve();
  EXPECT_NE(ports.store.store_port(), first);
  ports.store.serve();  // the ports of the last generation are free again
  ports.store.stop();
}

// It is no loss of the rendezvous store: another attempt would not help.
TEST(WorkersStore, ARangeThatIsTooSmallIsTheUsersFault) {
  WorkersPorts ports(3);
  const Error error = error_of([&] { ports.store.serve(); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  const std::string all = "all ports of LOCKSTEP_PORT_RANGE=" + ports.range;
  EXPECT_EQ(std::string(error.what()),
            "no ports for the next start of the ranks: " + all + " are in use; widen it");
}

}  // namespace
}  // namespace lockstep::testing
