// A flight recorder is another process's memory, perhaps half written: reading it must never crash.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/comm/flight/record.h"
#include "lockstep/comm/flight/ring.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  // The input is laid over a sound recorder: its length alone would refuse nearly every other.
  static const FlightMemory sound;
  std::vector<std::byte> bytes(sizeof(FlightMemory));
  std::memcpy(bytes.data(), static_cast<const void*>(&sound), sizeof sound);
  std::memcpy(bytes.data(), data, std::min(size, bytes.size()));
  if (size % 8 != 0) std::memcpy(bytes.data(), &kFlightMagic, sizeof kFlightMagic);
  try {
    const FlightRecord record = read_flight(bytes, "input");
    flight_table({record, record}, record.pid);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) __builtin_trap();
  }
  return 0;
}
