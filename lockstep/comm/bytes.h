#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace lockstep::inline internal {

/// memmove that allows null pointers for no bytes, and does nothing if both places are the same.
inline void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, static_cast<size_t>(bytes));
}

/// FNV-1a, 64 bits: detects accidental differences, not deliberate ones.
inline uint64_t fnv1a(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const auto byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  return hash;
}

}  // namespace lockstep::inline internal
