#pragma once
// The client of a TCP store, once it is connected.

#include <memory>
#include <string>

#include "lockstep/base/tls.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/store.h"

namespace lockstep::inline internal {

/// `fd`: connected and authenticated. `tls`: as authenticate_client() returned it. `server`: its
/// address, for errors.
std::shared_ptr<Store> make_tcp_store_client(UniqueFd fd, std::unique_ptr<TlsSession> tls,
                                             std::string server);

}  // namespace lockstep::inline internal
