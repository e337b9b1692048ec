#pragma once
// A real etcd for tests: one member on a free loopback port, with its data in a temporary folder.

#include <sys/types.h>

#include <string>

#include "lockstep/store/etcd/etcd_store.h"
#include "tests/support/held_port.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {

class EtcdServer {
 public:
  enum class Wire { kPlain, kTls };

  /// Returns once it serves.
  explicit EtcdServer(Wire wire = Wire::kPlain);
  ~EtcdServer() { kill(); }
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  void kill();          ///< kill -9. Its data stays.
  void end();           ///< The same by SIGTERM, so that it ends in order.
  void forget() const;  ///< Deletes its data, while it does not run.
  void start();         ///< Again, on the same data and port. Does not wait until it serves.
  void stop() const;
  void go_on() const;

  Endpoint endpoint() const { return {"127.0.0.1", port_.number()}; }
  /// Of kTls: the certificate that it has made for itself.
  std::string certificate() const { return data_ / "data/fixtures/client/cert.pem"; }
  /// A root that no other call has returned.
  EtcdOptions new_root();
  // Of kPlain.
  /// Compacts: drops all revisions before `revision`.
  void compact(uint64_t revision) const;
  /// The first of its counters whose line begins with `name`.
  double counter(const std::string& name) const;
  double committed_proposals() const { return counter("etcd_server_proposals_committed_total"); }
  double lease_renewals() const {
    return counter("grpc_server_msg_received_total{grpc_method=\"LeaseKeepAlive\"");
  }

 private:
  void end_by(int signal);

  const Wire wire_;
  TempFolder data_;
  HeldPort port_;
  pid_t pid_ = 0;
  int num_roots_ = 0;
};

/// The server of this test program, started at the first call.
EtcdServer& shared_etcd();

}  // namespace lockstep::testing
