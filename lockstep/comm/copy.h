#pragma once

#include <cstdint>
#include <cstring>

namespace lockstep {

/// memmove that bears "nothing, from nowhere", and does nothing where both are the same place.
inline void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, static_cast<size_t>(bytes));
}

}  // namespace lockstep
