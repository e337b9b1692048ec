#pragma once

#include <memory>
#include <string>

#include "lockstep/store.h"

namespace lockstep::inline internal {

/// A client of the store at a URL:
///
///   tcp://HOST:PORT       a server of this library; `secret` is proved (see connect_tcp_store())
///   etcd://HOST[:PORT][,HOST[:PORT]...][/ROOT][?OPTIONS]
///                         members of an etcd cluster, port 2379 unless given; keys lie below ROOT/
///                         (lockstep/). OPTIONS, joined by '&': protocol=https, ca_cert=FILE,
///                         ssl_cert=FILE, ssl_cert_key=FILE; a file implies https. `secret` is not
///                         used (see connect_etcd_store())
///   file:///FOLDER        a folder that all clients share; `secret` tells jobs apart (see
///                         join_file_store())
///   memory://             a store of this process that nobody else has
///
/// Retries until the deadline while nobody answers. Errors: kInvalidArgument naming the fault if it
/// is no such URL. Otherwise those of the kind.
std::shared_ptr<Store> open_store(const std::string& url, const std::string& secret,
                                  Deadline deadline);

}  // namespace lockstep::inline internal
