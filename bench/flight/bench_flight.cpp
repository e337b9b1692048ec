// Cost of one event of the flight recorder: its begin and its end.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "lockstep/comm/flight/ring.h"

int main() {
  using Clock = std::chrono::steady_clock;
  constexpr int kEvents = 100'000;
  constexpr uint32_t kPlaces = 32;  // a program's operations rotate among them
  lockstep::FlightRing ring(0, 1, "");
  const auto group = ring.add_group("w", 0, 1);
  std::vector<double> ns;
  for (int round = 0; round < 20; ++round) {
    const auto begin = Clock::now();
    for (uint64_t i = 1; i <= kEvents; ++i) {
      const lockstep::CallSite site{__FILE__, static_cast<uint32_t>(i % kPlaces + 1)};
      ring.leave(ring.enter({"all_reduce", group, i, 1024, 4096, 0, -1, site}), false);
    }
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kEvents);
  }
  std::sort(ns.begin(), ns.end());
  fmt::print("flight recorder: an event costs {:.0f} ns (min), {:.0f} ns (median of {})\n",
             ns.front(), ns[ns.size() / 2], ns.size());
}
