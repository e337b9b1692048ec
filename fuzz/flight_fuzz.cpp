// A flight recorder is another process's memory, perhaps half written: reading it must never crash.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lockstep/comm/flight/record.h"
#include "lockstep/comm/flight/ring.h"
#include "lockstep/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  // The input is laid over a sound recorder, whose length alone would refuse nearly every other: a
  // third each over its header, over its call sites and over its events.
  static const FlightMemory sound;
  std::vector<std::byte> bytes(sizeof(FlightMemory));
  std::memcpy(bytes.data(), static_cast<const void*>(&sound), sizeof sound);
  const size_t third = size / 3;
  const auto lay = [&](size_t part, size_t offset) {
    std::memcpy(&bytes[offset], data + part * third, std::min(third, bytes.size() - offset));
  };
  lay(0, 0);
  lay(1, offsetof(FlightHeader, sites));
  lay(2, sizeof(FlightHeader));
  if (size % 8 != 0) std::memcpy(bytes.data(), &kFlightMagic, sizeof kFlightMagic);
  try {
    const FlightRecord record = read_flight(bytes, "input");
    flight_table({record, record}, record.pid);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) __builtin_trap();
  }
  return 0;
}
