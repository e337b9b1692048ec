#pragma once
// A store in an etcd cluster (3.4 or later), over the JSON gateway of its v3 API.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/socket.h"
#include "lockstep/store.h"
#include "lockstep/store/etcd/http.h"

namespace lockstep {

struct EtcdOptions {
  std::vector<Endpoint> members;   ///< Of one cluster; each call goes to one that answers.
  std::string root = "lockstep/";  ///< What all keys begin with there. Not empty.
  bool use_tls = false;
  TlsFiles tls;
};

/// Connects, trying again until the deadline while no member answers. Who may use the cluster is
/// etcd's business: there is no job secret. No thread; a connection per thread that calls.
///
/// What differs from other stores:
///  * Every call is tried again, here and at the other members, while its deadline is not over, so
///    a restart of etcd is waited for; a watch waits for up to 5 s longer before it says kTimeout.
///  * A held key is a lease. Times to live are rounded up to whole seconds, at least 2 (etcd's own
///    limit), and count from the last hold() alone. A holder that is killed is silent: its keys
///    last until then. hold() of the same value keeps the earlier time to live, and writes nothing;
///    keys that are renewed together cost one renewal. A holder whose lease is found gone has lost
///    all: each later call throws kPeerLost.
///  * One stream serves the watches of a prefix that follow each other.
///  * set_many writes 100 keys at a time. wait and check read 100 keys at a time, at one revision.
///  * A value may have as many bytes as etcd's --max-request-bytes allows (1.5 MiB unless set).
///  * add and compare_set write a second key with each call, by which they know after a lost
///    connection whether they were carried out. It goes with the client.
/// Errors: kUnavailable (libcurl.so.4 is missing), kTimeout, kMismatch (not etcd's v3 API).
std::shared_ptr<Store> connect_etcd_store(const EtcdOptions& options, Deadline deadline);

}  // namespace lockstep
