#pragma once
// The types and constants of libpmix.so.2 in use, as PMIx Standard 4 defines them. The library is
// loaded on demand, so that neither building nor starting needs it.

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::pmix {

struct Proc {
  std::array<char, 256> nspace{};
  uint32_t rank = 0;
};

struct Value {
  uint16_t type = 0;
  union {
    bool flag;
    int integer;
    uint16_t uint16;
    uint32_t uint32;
    char* string;
    std::array<char, 24> room;
  } data{.room = {}};
};

struct Info {
  std::array<char, 512> key{};
  uint32_t flags = 0;
  Value value;
};
static_assert(sizeof(Value) == 32 && offsetof(Value, data) == 8);
static_assert(sizeof(Proc) == 260 && sizeof(Info) == 552);

inline constexpr uint16_t kBool = 1, kString = 3, kInt = 6, kUint16 = 13, kUint32 = 14;
inline constexpr uint8_t kGlobal = 3;  ///< Scope of a value: for all processes.
inline constexpr uint32_t kAllRanks = UINT32_MAX - 1;
inline constexpr int kSuccess = 0;

using Callback = void (*)(int status, void* data);

}  // namespace lockstep::pmix
