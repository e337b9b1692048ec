#include "lockstep/comm/flight/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lockstep/comm/flight/ring.h"
#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/error.h"
#include "lockstep/types.h"

namespace lockstep::inline internal {
namespace {

/// Up to the first 0; bytes that could disturb a terminal become '?'.
template <size_t N>
std::string text_of(const char (&field)[N]) {
  std::string text(field, ::strnlen(field, N));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

std::string dtype_name(uint8_t dtype) {
  return dtype < kNumDTypes ? std::string(to_string(static_cast<DType>(dtype))) : "?";
}

/// Moments are bounded so that arithmetic on garbage cannot overflow.
int64_t moment(int64_t monotonic_ns, int64_t offset_ns) {
  constexpr int64_t kMost = int64_t{1} << 61;
  return std::clamp(monotonic_ns, -kMost, kMost) + std::clamp(offset_ns, -kMost, kMost);
}

/// A complete and plausible copy of the ring; the writer may be active in it.
const FlightMemory& view(std::span<const std::byte> bytes, const std::string& what,
                         std::vector<uint64_t>& aligned) {
  if (bytes.size() != sizeof(FlightMemory)) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}: {} bytes are no flight recorder of this version, which has {}",
                            what, bytes.size(), sizeof(FlightMemory)));
  }
  aligned.resize((bytes.size() + 7) / 8);
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  const auto& memory = *reinterpret_cast<const FlightMemory*>(aligned.data());
  if (memory.header.magic != kFlightMagic) {
    throw Error(ErrorCode::kCorrupt, what + " is no flight recorder");
  }
  return memory;
}

std::string site_of(const FlightEvent& event, const FlightHeader& header) {
  if (event.site == 0 || event.site > kFlightSites) return "";
  const FlightSite& site = header.sites[event.site - 1];
  const uint32_t line = site.line;
  if (line == 0) return "";  // it is being added
  std::string text = fmt::format("{}:{}", text_of(site.file), line);
  if (event.bucket >= 0) text += fmt::format(" (bucket {})", event.bucket);
  return text;
}

FlightEntry entry_of(const FlightEvent& event, const FlightHeader& header,
                     const std::vector<std::string>& groups) {
  const uint32_t index = event.group & 0xff;
  const bool known = index < groups.size() &&
                     event.group == flight_group_id(index, header.groups[index].generation);
  FlightEntry entry;
  entry.call = text_of(event.call);
  entry.group = known ? groups[index] : "?";
  entry.sequence = event.sequence;
  entry.count = event.count;
  entry.bytes = event.bytes;
  entry.dtype = dtype_name(event.dtype);
  entry.peer = event.peer;
  entry.site = site_of(event, header);
  entry.entered_ns = moment(event.entered_ns, header.realtime_offset_ns);
  if (event.left_ns != 0) entry.left_ns = moment(event.left_ns, header.realtime_offset_ns);
  entry.failed = event.failed != 0;
  entry.went_on = event.failed == 2;
  entry.waits = event.waits != 0;
  return entry;
}

}  // namespace

FlightRecord read_flight(std::span<const std::byte> bytes, const std::string& what) {
  std::vector<uint64_t> aligned;
  const FlightMemory& memory = view(bytes, what, aligned);
  const FlightHeader& header = memory.header;
  FlightRecord record;
  record.rank = header.rank;
  record.size = header.size;
  record.pid = header.pid;
  record.pid_space = header.pid_space;
  record.host = text_of(header.host);
  record.exit_code = std::clamp(header.ended.load() - 1, -1, 255);
  const uint32_t groups = std::min(header.groups_used.load(), kFlightGroups);
  for (uint32_t i = 0; i < groups; ++i) record.groups.push_back(text_of(header.groups[i].name));
  std::vector<const FlightEvent*> events;
  for (uint32_t i = 0; i < kFlightEvents; ++i) {
    const FlightEvent& event = memory.events[i];
    if (event.number != 0 && (event.number - 1) % kFlightEvents == i) events.push_back(&event);
  }
  std::sort(events.begin(), events.end(), [](const FlightEvent* a, const FlightEvent* b) {
    return a->number.load() < b->number.load();
  });
  for (const FlightEvent* event : events) {
    record.entries.push_back(entry_of(*event, header, record.groups));
  }
  for (uint32_t i = 0; i < groups; ++i) {
    record.memberships[record.groups[i]] = {header.groups[i].rank, header.groups[i].size};
  }
  std::erase(record.groups, "");  // one that is being added
  record.memberships.erase("");
  return record;
}

}  // namespace lockstep::inline internal
