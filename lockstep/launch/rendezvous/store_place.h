#pragma once

#include "lockstep/launch/rendezvous/meeting_place.h"

namespace lockstep {

/// A store that is there whichever agent dies: etcd, or a folder that all hosts share. Any agent
/// may lead. Keys lie below the run's name.
class StorePlace final : public MeetingPlace {
 public:
  /// Errors: kInvalidArgument (hosts that others reach, and no secret).
  StorePlace(const RunOptions& options, const std::string& secret);

  std::shared_ptr<Store> open(Deadline deadline) override;
  std::shared_ptr<Store> reopen(const Candidates& candidates, const std::atomic<bool>& stop,
                                Deadline deadline) override;
  std::shared_ptr<Store> rejoin(const std::atomic<bool>& stop, Deadline deadline) override;
  bool by_lease() const override { return options_.rdzv_backend != "file"; }
  bool may_lead() const override { return true; }
  std::string own_address() const override { return address_; }
  std::string listen_host() const override;
  int own_port() const override { return 0; }
  std::optional<Endpoint> elsewhere() const override { return std::nullopt; }
  Endpoint endpoint() const override { return {}; }
  std::string name() const override { return name_; }
  std::string loss() const override { return name_ + " cannot be reached"; }
  /// A restart of the service is waited for.
  std::chrono::milliseconds call_limit() const override { return options_.read_timeout; }
  void close(Deadline) override {}

 private:
  const RunOptions options_;
  const std::string secret_;
  std::string url_;
  std::string name_;
  std::string address_;
};

}  // namespace lockstep
