#include "lockstep/launch/rendezvous/elastic_rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "lockstep/base/auth.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/quiet_thread.h"
#include "lockstep/launch/rendezvous/participant.h"
#include "lockstep/world/identity.h"

namespace lockstep {
namespace {

/// For the others to read that the job is over, where this agent serves.
constexpr auto kByeLimit = std::chrono::seconds(5);

Offer make_offer(const RunOptions& options, const std::string& secret, const MeetingPlace& place,
                 const WorkersStore& workers) {
  Offer offer;
  offer.mark = secret_mark(secret, options.wire);
  offer.host = host_name();
  offer.address = options.local_addr.empty() ? place.own_address() : options.local_addr;
  offer.store_port = workers.store_port();
  offer.torch_port = workers.torch_port();
  offer.place_port = place.own_port();
  offer.local_size = options.nproc_per_node;
  offer.role = options.role;
  offer.program = options.program;
  if (options.node_rank_given || options.rdzv_backend == "static") {
    offer.node_rank = options.node_rank;
  }
  offer.min_nodes = options.min_nodes;
  offer.max_nodes = options.num_nodes;
  return offer;
}

class ElasticRendezvous final : public Rendezvous {
 public:
  ElasticRendezvous(const RunOptions& options, const std::string& secret)
      : place_((check_wire(secret, options.wire), make_place(options, secret))),
        workers_(place_->listen_host(), secret, options.wire),
        standing_(make_job_secret().substr(0, 16), make_offer(options, secret, *place_, workers_)),
        participant_(options, secret, place_.get(), &workers_, &standing_) {
    // As a failure of this node it reaches all, whose ranks wait for those that cannot come in.
    workers_.on_full([this](const std::string& why) {
      const Offer own = standing_.offer();
      Failure failure;
      failure.node_rank = std::max(own.last_rank, 0);
      failure.host = own.host;
      failure.status.code = 1;
      failure.cause = fmt::format("node {} ({}): the store of the job's ranks: {}",
                                  failure.node_rank, failure.host, why);
      standing_.failed(failure);
    });
  }

  ~ElasticRendezvous() override {
    participant_.stop();
    if (thread_.joinable()) thread_.join();
    workers_.stop();  // its thread knows standing_
    if (participant_.saw_end()) place_->close(Deadline::after(kByeLimit));
  }
  ElasticRendezvous(const ElasticRendezvous&) = delete;
  ElasticRendezvous& operator=(const ElasticRendezvous&) = delete;

  std::optional<JobPlan> join() override {
    thread_ = start_quiet_thread([this] { participant_.run(); });
    return standing_.wait_for_plan();
  }

  int fd() const override { return standing_.fd(); }
  JobNews news() override { return standing_.news(); }
  void failed(const Failure& failure) override { standing_.failed(failure); }
  void done() override { standing_.ended_work(NodeWork::kDone); }
  void gone(bool stepped) override { standing_.ended_work(NodeWork::kIdle, stepped); }
  void leave(int signal) override { standing_.leave(signal); }
  std::optional<JobPlan> next() override { return standing_.next(); }

 private:
  std::unique_ptr<MeetingPlace> place_;
  WorkersStore workers_;
  Standing standing_;
  Participant participant_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Rendezvous> make_elastic_rendezvous(const RunOptions& options,
                                                    const std::string& secret) {
  return std::make_unique<ElasticRendezvous>(options, secret);
}

}  // namespace lockstep
