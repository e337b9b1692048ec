#include "lockstep/launch/rendezvous/rendezvous.h"

#include <fmt/format.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <thread>

#include "lockstep/base/auth.h"
#include "lockstep/base/generation_token.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/deadline.h"
#include "lockstep/launch/job/restart_policy.h"
#include "lockstep/launch/rendezvous/membership_client.h"
#include "lockstep/launch/rendezvous/workers_store.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/world/addresses.h"
#include "lockstep/world/host_id.h"

namespace lockstep::inline internal {
namespace {

class LoneRendezvous final : public Rendezvous {
 public:
  LoneRendezvous(const RunOptions& options, const std::string& secret)
      : options_(options), secret_(secret.empty() ? make_job_secret() : secret) {
    assignment_.run_id = options_.run_id.empty() ? make_run_id() : options_.run_id;
    const HostRequest request = {host_name(), 1, options_.nproc_per_node, options_.role};
    assignment_.ranks = assign_ranks({request})[0];
    assignment_.host = request.host;
    assignment_.world_size = request.local_size;
    assignment_.secret = secret_;
    assignment_.master_addr = options_.master_addr;
    assignment_.agent_serves_torch = agent_serves_torch(options_);
    assignment_.max_restarts = options_.max_restarts;
    assignment_.token = generation_token(make_token_part(), "");
  }

  std::optional<JobAssignment> join() override { return open_stores(); }

  int fd() const override { return timer_.get(); }

  JobStatus job_status() override {
    uint64_t times = 0;
    [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &times, sizeof times);
    return job_status_;
  }

  void failed(const Failure& failure) override {
    const auto decision =
        after_failure(&record_, options_.max_restarts, failure, assignment_.generation);
    if (decision.again) {
      job_status_.leave = true;
      job_status_.failure = failure;
      job_status_.pause = restart_delay(record_);
      again_at_ = Deadline::after(job_status_.pause);
    } else {
      job_status_.end = {failure, decision.why_not};
    }
  }

  void done() override { job_status_.end = JobEnd{}; }
  void gone(bool) override {}
  void leave(int) override {}

  std::optional<JobAssignment> next() override {
    if (!job_status_.leave) return std::nullopt;
    if (!again_at_.passed()) {
      wake_then();
      return std::nullopt;
    }
    job_status_ = {};
    ++assignment_.generation;
    assignment_.restart_count = record_.restarts;
    return open_stores();
  }

  int first_connection_fd() const override { return listener_.get(); }
  void serve() override {
    server_.emplace(std::move(listener_), TcpStoreServerOptions{"127.0.0.1", 0, secret_});
  }
  int first_torch_connection_fd() const override { return torch_->first_connection_fd(); }
  void serve_torch() override { torch_->serve(); }

 private:
  /// Makes fd() readable at again_at_, when next() has a result.
  void wake_then() {
    itimerspec at{};
    const auto left = again_at_.left() + std::chrono::milliseconds(1);
    at.it_value.tv_sec = left.count() / 1000;
    at.it_value.tv_nsec = left.count() % 1000 * 1'000'000;
    ::timerfd_settime(timer_.get(), 0, &at, nullptr);
  }

  /// Opens new stores for each generation: no key or connection of an earlier one is ever met.
  const JobAssignment& open_stores() {
    server_.reset();
    torch_.reset();  // first, as the user may have named the port
    torch_.emplace(listen_host(options_.master_addr), options_.master_port,
                   assignment_.agent_serves_torch);
    listener_ = tcp_listen("127.0.0.1", 0);
    assignment_.store = {"127.0.0.1", local_port(listener_.get())};
    assignment_.master_port = torch_->port();
    return assignment_;
  }

  RunOptions options_;
  std::string secret_;
  JobAssignment assignment_;
  std::optional<TorchStorePort> torch_;
  UniqueFd listener_;
  std::optional<TcpStoreServer> server_;
  RestartRecord record_;
  JobStatus job_status_;
  Deadline again_at_ = Deadline::after(std::chrono::seconds(0));
  UniqueFd timer_{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
};

/// Time for the others to read that the job is over, if this agent serves.
constexpr auto kByeLimit = std::chrono::seconds(5);

/// Empty if it has been removed.
std::string working_folder() {
  std::error_code none;
  return std::filesystem::current_path(none).string();
}

/// Empty where the kernel hides it: then no other agent counts as one of this host.
std::string host_id_if_known() {
  try {
    return this_host_id();
  } catch (const Error&) {
    return "";
  }
}

JoinRequest make_join_request(const RunOptions& options, const std::string& secret,
                              const RendezvousBackend& backend, const WorkersStore& workers) {
  JoinRequest request;
  request.mark = secret_mark(secret, options.wire);
  request.host = host_name();
  request.address = options.local_addr.empty() ? backend.own_address() : options.local_addr;
  request.store_port = workers.store_port();
  request.torch_port = workers.torch_port();
  request.takeover_port = backend.own_port();
  request.local_size = options.nproc_per_node;
  request.role = options.role;
  request.program = options.program;
  request.command = text_mark(secret, options.program_and_arguments);
  request.folder = text_mark(secret, working_folder());
  request.host_id = host_id_if_known();
  request.named = !options.run_id.empty();
  if (options.node_rank_given || options.rdzv_backend == "static") {
    request.node_rank = options.node_rank;
  }
  request.min_nodes = options.min_nodes;
  request.max_nodes = options.num_nodes;
  return request;
}

class ElasticRendezvous final : public Rendezvous {
 public:
  ElasticRendezvous(const RunOptions& options, const std::string& secret)
      : backend_((check_wire(secret, options.wire), make_rendezvous_backend(options, secret))),
        workers_(backend_->listen_host(), secret, options.wire, agent_serves_torch(options)),
        status_(make_job_secret().substr(0, 16),
                make_join_request(options, secret, *backend_, workers_)),
        client_(options, secret, backend_.get(), &workers_, &status_) {
    // A failure of this host reaches all, whose ranks wait for those that cannot connect.
    workers_.on_full([this](const std::string& why) {
      const JoinRequest own = status_.join_request();
      Failure failure;
      failure.node_rank = std::max(own.last_rank, 0);
      failure.host = own.host;
      failure.status.code = 1;
      failure.cause = fmt::format("host {} ({}): the store of the job's ranks: {}",
                                  failure.node_rank, failure.host, why);
      status_.failed(failure);
    });
  }

  ~ElasticRendezvous() override {
    client_.stop();
    if (thread_.joinable()) thread_.join();
    workers_.stop();  // its thread uses status_
    if (client_.saw_end()) backend_->close(Deadline::after(kByeLimit));
  }
  ElasticRendezvous(const ElasticRendezvous&) = delete;
  ElasticRendezvous& operator=(const ElasticRendezvous&) = delete;

  std::optional<JobAssignment> join() override {
    thread_ = start_thread_with_signals_blocked([this] { client_.run(); });
    return status_.wait_for_assignment();
  }

  int fd() const override { return status_.fd(); }
  JobStatus job_status() override { return status_.job_status(); }
  void failed(const Failure& failure) override { status_.failed(failure); }
  void done() override { status_.ended_work(HostWork::kDone); }
  void gone(bool stepped) override { status_.ended_work(HostWork::kIdle, stepped); }
  void leave(int signal) override { status_.leave(signal); }
  std::optional<JobAssignment> next() override { return status_.next(); }

 private:
  std::unique_ptr<RendezvousBackend> backend_;
  WorkersStore workers_;
  AgentStatus status_;
  MembershipClient client_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Rendezvous> make_rendezvous(const RunOptions& options, const std::string& secret) {
  if (options.num_nodes == 1) return std::make_unique<LoneRendezvous>(options, secret);
  return std::make_unique<ElasticRendezvous>(options, secret);
}

std::string make_run_id() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return fmt::format("{}-{}", text, make_job_secret().substr(0, 4));
}

}  // namespace lockstep::inline internal
