#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/deadline.h"
#include "lockstep/world/detect/reader.h"

// The types and constants of libpmix.so.2 in use, as PMIx Standard 4 defines them. The library is
// loaded on demand, so that neither building nor starting needs it.
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

namespace lockstep::inline internal {

/// A connection to the PMIx server of this host: PMIx_Init to PMIx_Finalize.
class PmixClient {
 public:
  /// This process's client, from the first call to the process's end: an MPI_Init after the last
  /// PMIx_Finalize would fail. Errors: kUnavailable (no library, no server).
  static PmixClient& get();

  PmixClient();
  ~PmixClient();
  PmixClient(const PmixClient&) = delete;
  PmixClient& operator=(const PmixClient&) = delete;

  /// Errors: kIo. All can read the value once fence() has returned.
  void put(const std::string& key, const std::string& value);
  /// All processes of the job meet. Errors: kTimeout, kIo.
  void fence(Deadline deadline);
  /// The value that rank `rank` has put. Errors: kNotFound.
  std::string get_text(uint32_t rank, const char* key, Deadline deadline);
  /// A number that the server has about this process (pmix::kAllRanks: about the job). Errors:
  /// kNotFound.
  int get_number(uint32_t rank, const char* key, Deadline deadline);
  uint32_t own_rank() const { return self_.rank; }

 private:
  struct Functions;
  pmix::Value* look_up(uint32_t rank, const char* key, Deadline deadline);

  std::unique_ptr<Functions> functions_;
  pmix::Proc self_;
  int owner_ = 0;  ///< Process that made it; a forked child must not finalize it.
};

/// Queries the server of this host. Errors: kUnavailable, kNotFound.
PmixJob ask_pmix_server();

}  // namespace lockstep::inline internal
