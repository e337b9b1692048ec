#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// FNV-1a, 64 bits: tells what differs by accident, not by intent.
inline uint64_t fnv1a(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const auto byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  return hash;
}

}  // namespace lockstep
