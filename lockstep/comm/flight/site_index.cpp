#include "lockstep/comm/flight/site_index.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace lockstep {
namespace {

constexpr uint32_t kMostLooks = 16;

uint32_t first_look(const CallSite& site) {
  constexpr uint64_t kGolden = 0x9e'37'79'b9'7f'4a'7c'15;
  const auto key = reinterpret_cast<uintptr_t>(site.file) + site.line * kGolden;
  return static_cast<uint32_t>((key * kGolden) >> 32) % kFlightSites;
}

void write(const CallSite& site, FlightSite& entry) {
  std::string_view name = site.file;
  name.remove_prefix(name.find_last_of('/') + 1);  // none: npos + 1 is 0
  constexpr size_t kRoom = sizeof entry.file - 1;
  if (name.size() > kRoom) name.remove_prefix(name.size() - kRoom);
  std::memcpy(entry.file, name.data(), name.size());
  entry.line.store(site.line, std::memory_order_release);
}

}  // namespace

uint16_t SiteIndex::find_or_add(const CallSite& site) {
  if (site.line == 0 || site.file == nullptr) return 0;
  uint32_t index = first_look(site);
  for (uint32_t look = 0; look < kMostLooks; ++look, index = (index + 1) % kFlightSites) {
    Slot& slot = slots_[index];
    State state = slot.state.load(std::memory_order_acquire);
    if (state == kFree && slot.state.compare_exchange_strong(state, kTaken)) {
      slot.line = site.line;
      slot.file = site.file;
      write(site, table_[index]);
      slot.state.store(kWritten, std::memory_order_release);
      return static_cast<uint16_t>(index + 1);
    }
    if (state == kWritten && slot.line == site.line && slot.file == site.file) {
      return static_cast<uint16_t>(index + 1);
    }
  }
  return 0;
}

}  // namespace lockstep
