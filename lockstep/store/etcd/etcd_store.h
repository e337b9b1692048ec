#pragma once
// A store in an etcd cluster (3.4 or later), over the JSON gateway of its v3 API.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/addresses.h"
#include "lockstep/store.h"
#include "lockstep/store/etcd/http.h"

namespace lockstep::inline internal {

struct EtcdOptions {
  std::vector<Endpoint> members;   ///< Of one cluster; each call goes to one that answers.
  std::string root = "lockstep/";  ///< Prefix of all keys there. Not empty.
  bool use_tls = false;
  TlsFiles tls;
  /// A stream is reopened at this interval, in case its member vanished silently.
  std::chrono::milliseconds stream_time{60'000};
};

/// Connects, and retries until the deadline while no member answers. etcd itself controls access:
/// there is no job secret. No thread; one connection per calling thread.
///
/// Differences from other stores:
///  * Every call is retried, here and at the other members, until its deadline, so a restart of
///    etcd is survived. A watch waits for up to 5 s longer before kTimeout.
///  * A lease is etcd's own. Times to live are rounded up to whole seconds, at least 2 (its limit),
///    and count from the last set_with_lease() alone: a killed holder's keys last until then.
///  * set_with_lease() of the same value keeps the earlier time to live, and writes nothing. Keys
///    that are renewed together cost one renewal.
///  * A holder whose lease is gone has lost all: each later call throws kPeerLost.
///  * One stream serves consecutive watches of a prefix. They go on after etcd has compacted its
///    history: the client compares the keys that are there with those that it has delivered. It
///    keeps those of the last watch only, and refuses any other watch from a compacted version.
///  * set_many writes 100 keys at a time.
///  * A value may have as many bytes as etcd's --max-request-bytes allows (default 1.5 MiB).
/// Errors: kUnavailable (libcurl.so.4 is missing; a TLS file is unusable, or no member's
/// certificate is trusted), kTimeout, kMismatch (not etcd's v3 API).
std::shared_ptr<KeyValueStore> connect_etcd_store(const EtcdOptions& options, Deadline deadline);

}  // namespace lockstep::inline internal
