#include "lockstep/base/auth.h"
#include "lockstep/launch/agent/machine.h"
#include "lockstep/launch/agent/rendezvous.h"
#include "lockstep/launch/agent/reserved_port.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep {
namespace {

class LoneRendezvous final : public Rendezvous {
 public:
  LoneRendezvous(const RunOptions& options, const std::string& secret)
      : options_(options), secret_(secret.empty() ? make_job_secret() : secret) {}

  JobPlan join() override {
    const NodeOffer offer = {host_name(), 1, options_.nproc_per_node, options_.role};
    master_port_.emplace(options_.master_port);
    listener_ = tcp_listen("127.0.0.1", 0);
    JobPlan plan;
    plan.run_id = options_.run_id.empty() ? make_run_id() : options_.run_id;
    plan.nodes = plan_ranks({offer});
    plan.hosts = {offer.host};
    plan.store = {"127.0.0.1", local_port(listener_.get())};
    plan.secret = secret_;
    plan.master_addr = options_.master_addr;
    plan.master_port = master_port_->port();
    return plan;
  }

  JobNews news() override {
    JobNews news;
    news.end = end_;
    return news;
  }

  void failed(const Failure& failure) override { end_ = {failure}; }
  void done() override { end_ = JobEnd{}; }
  void gone() override {}
  void leave(int) override {}
  std::optional<JobPlan> next() override { return std::nullopt; }

  int knock_fd() const override { return listener_.get(); }
  void serve() override {
    server_.emplace(std::move(listener_), TcpStoreServerOptions{"127.0.0.1", 0, secret_});
  }

 private:
  RunOptions options_;
  std::string secret_;
  std::optional<ReservedPort> master_port_;
  UniqueFd listener_;
  std::optional<TcpStoreServer> server_;
  std::optional<JobEnd> end_;
};

}  // namespace

std::unique_ptr<Rendezvous> make_lone_rendezvous(const RunOptions& options,
                                                 const std::string& secret) {
  return std::make_unique<LoneRendezvous>(options, secret);
}

}  // namespace lockstep
