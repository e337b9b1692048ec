#pragma once

#include <memory>
#include <string>

#include "lockstep/deadline.h"
#include "lockstep/world/bootstrap/pmix_abi.h"
#include "lockstep/world/detect/reader.h"

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
