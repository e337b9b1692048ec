#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "lockstep/base/auth.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/agent/job_watch.h"
#include "lockstep/launch/agent/machine.h"
#include "lockstep/launch/agent/rendezvous.h"
#include "lockstep/launch/agent/reserved_port.h"
#include "lockstep/launch/identity.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep {
namespace {

constexpr char kJobKey[] = "agent/job";
constexpr char kNodePrefix[] = "agent/node/";
constexpr char kHeardPrefix[] = "agent/heard/";
constexpr char kPlanKey[] = "agent/plan";
/// After this long the user is told whom the others wait for.
constexpr std::chrono::seconds kSayAfter{5};

NodeOffer make_offer(const RunOptions& options) {
  return {host_name(), options.num_nodes, options.nproc_per_node, options.role};
}

std::string to_json(const NodeOffer& offer) {
  const nlohmann::json json = {{"host", offer.host},
                               {"num_nodes", offer.num_nodes},
                               {"local_size", offer.local_size},
                               {"role", offer.role}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

NodeOffer offer_from_json(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return {json.at("host"), json.at("num_nodes"), json.at("local_size"), json.at("role")};
}

/// Several hosts with their ranks given.
class StaticRendezvous final : public Rendezvous {
 public:
  StaticRendezvous(const RunOptions& options, const std::string& secret)
      : options_(options), secret_(secret), deadline_(Deadline::after(options.join_timeout)) {
    if (secret_.empty() && !is_loopback(options_.master_addr)) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("--master_addr {} is reachable by others: set LOCKSTEP_SECRET to the "
                              "same text (openssl rand -hex 32) on all {} nodes",
                              options_.master_addr, options_.num_nodes));
    }
  }

  JobPlan join() override {
    const bool first = options_.node_rank == 0;
    if (first) open_store();
    connect();
    if (first) store_->set(kJobKey, options_.run_id, deadline_);
    if (!first) check_job();
    offer();
    if (first) publish_plan();
    plan_ = read_plan();
    watch_.emplace(store_, plan_);
    return plan_;
  }

  int fd() const override { return watch_->fd(); }

  JobNews news() override {
    watch_->clear();
    JobNews news;
    const auto failure = watch_->failure();
    if (failure || watch_->all_succeeded()) news.end = JobEnd{failure, ""};
    return news;
  }

  void failed(const Failure& failure) override { watch_->publish(failure); }
  void done() override { watch_->publish_success(); }
  void gone() override {}

  void leave(int signal) override {
    watch_->publish(node_failure(plan_, {0, signal}, "was ended by " + signal_name(signal)));
  }

  std::optional<JobPlan> next() override { return std::nullopt; }

 private:
  Endpoint meeting_place() const { return {options_.master_addr, options_.master_port}; }

  void open_store() {
    const bool v6 = options_.master_addr.find(':') != std::string::npos;
    const bool local = is_loopback(options_.master_addr);
    const std::string host = local ? (v6 ? "::1" : "127.0.0.1") : (v6 ? "::" : "0.0.0.0");
    try {
      server_.emplace(TcpStoreServerOptions{host, options_.master_port, secret_});
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("--master_port: port {} is already in use here; by another agent "
                              "with --node_rank 0?",
                              options_.master_port));
    }
  }

  void connect() {
    const auto connect_until = [this](Deadline deadline) {
      store_ = connect_tcp_store(meeting_place(), secret_, deadline);
    };
    try {
      return connect_until(deadline_.at_most(kSayAfter));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout || deadline_.passed()) throw;
    }
    log_info(fmt::format("node {} waits for node 0 at {}", options_.node_rank,
                         to_string(meeting_place())));
    connect_until(deadline_);
  }

  /// Waits for what node 0 publishes. `say` is called when that takes long; `what` is for errors.
  template <class Say>
  std::string await(const char* key, Deadline deadline, const std::string& what, const Say& say) {
    try {
      try {
        return store_->get(key, deadline.at_most(kSayAfter));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kTimeout || deadline.passed()) throw;
      }
      say();
      return store_->get(key, deadline);
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("node {} waits for {}: {}", options_.node_rank, what, error.what()));
    }
  }

  /// The store may be another program's, whose nodes would never come, or another job's.
  void check_job() {
    const std::string what = fmt::format(
        "node 0 at {}; a store is served there, but not by an agent with --node_rank "
        "0, so check --master_addr and --master_port",
        to_string(meeting_place()));
    const std::string job = await(kJobKey, deadline_, what, [&] {
      log_info(fmt::format("node {} waits for {}", options_.node_rank, what));
    });
    if (job.empty() || options_.run_id.empty() || job == options_.run_id) return;
    throw Error(ErrorCode::kMismatch,
                fmt::format("--rdzv_id {}: those who meet at {} are of job {}; give each job a "
                            "--master_port of its own",
                            options_.run_id, to_string(meeting_place()), job));
  }

  void offer() {
    const auto key = kNodePrefix + std::to_string(options_.node_rank);
    const auto put =
        store_->compare_set(key, std::nullopt, to_json(make_offer(options_)), deadline_);
    if (put.swapped) return;
    throw Error(ErrorCode::kMismatch,
                fmt::format("--node_rank {} is taken by an agent on {}", options_.node_rank,
                            offer_from_json(put.value.value_or("{}")).host));
  }

  /// Node 0: all offers, by node rank.
  std::vector<NodeOffer> collect_offers() {
    std::vector<std::optional<NodeOffer>> offers(static_cast<size_t>(options_.num_nodes));
    uint64_t version = 0;
    std::vector<int> said;
    while (true) {
      std::vector<int> missing;
      for (size_t i = 0; i < offers.size(); ++i) {
        if (!offers[i]) missing.push_back(static_cast<int>(i));
      }
      if (missing.empty()) break;
      if (deadline_.passed()) throw Error(ErrorCode::kTimeout, late(missing));
      const auto news = store_->watch(kNodePrefix, version, deadline_.at_most(kSayAfter));
      version = news.version;
      if (news.changes.empty() && missing != said) {
        log_info(waiting(missing));
        said = missing;
      }
      for (const auto& change : news.changes) take_offer(change, &offers);
    }
    std::vector<NodeOffer> all;
    for (const auto& each : offers) all.push_back(*each);
    return all;
  }

  void take_offer(const Store::Change& change, std::vector<std::optional<NodeOffer>>* offers) {
    const auto node = static_cast<size_t>(std::stoi(change.key.substr(sizeof kNodePrefix - 1)));
    if (node < offers->size() && change.value) (*offers)[node] = offer_from_json(*change.value);
  }

  std::string waiting(const std::vector<int>& missing) const {
    return fmt::format("{} of {} nodes are here; waiting for node {} at {}",
                       static_cast<size_t>(options_.num_nodes) - missing.size(), options_.num_nodes,
                       rank_list(missing), to_string(meeting_place()));
  }

  /// On the other nodes than 0.
  void say_who_is_missing() {
    std::set<std::string> here;
    for (const std::string& key : store_->list(kNodePrefix, deadline_)) here.insert(key);
    std::vector<int> missing;
    for (int node = 0; node < options_.num_nodes; ++node) {
      if (here.count(kNodePrefix + std::to_string(node)) == 0) missing.push_back(node);
    }
    if (!missing.empty()) log_info(waiting(missing));
  }

  std::string late(const std::vector<int>& missing) const {
    return fmt::format(
        "node {} of {} did not come to {} within {} s", rank_list(missing), options_.num_nodes,
        to_string(meeting_place()),
        std::chrono::duration_cast<std::chrono::seconds>(options_.join_timeout).count());
  }

  void publish_plan() {
    nlohmann::json json;
    try {
      const auto offers = collect_offers();
      plan_ranks(offers);  // the nodes must agree
      master_port_.emplace(0);
      for (const NodeOffer& offer : offers) json["offers"].push_back(to_json(offer));
      json["run_id"] = options_.run_id.empty() ? make_run_id() : options_.run_id;
      json["master_port"] = master_port_->port();
    } catch (const Error& error) {
      json = {{"error", error.what()}};
    }
    store_->set(kPlanKey, json.dump(), Deadline::after(10s));
  }

  JobPlan read_plan() {
    // Node 0 says who is missing; a moment longer, so that this is heard everywhere.
    const auto json = nlohmann::json::parse(
        await(kPlanKey, Deadline::at(deadline_.when() + std::chrono::seconds(5)),
              "node 0's plan of the job", [this] { say_who_is_missing(); }));
    if (json.contains("error")) {
      hear_of_error();
      throw Error(ErrorCode::kMismatch, json["error"]);
    }
    std::vector<NodeOffer> offers;
    for (const std::string text : json.at("offers")) offers.push_back(offer_from_json(text));
    if (options_.node_rank >= static_cast<int>(offers.size())) {
      throw Error(ErrorCode::kMismatch,
                  fmt::format("--node_rank {}, but node 0 was started with --nnodes {}",
                              options_.node_rank, offers.size()));
    }
    JobPlan plan;
    plan.nodes = plan_ranks(offers);
    for (const NodeOffer& offer : offers) plan.hosts.push_back(offer.host);
    plan.run_id = json.at("run_id");
    plan.node_rank = options_.node_rank;
    plan.store = meeting_place();
    plan.secret = secret_;
    plan.master_addr = options_.master_addr;
    plan.master_port = json.at("master_port");
    return plan;
  }

  /// Node 0 serves the store, so it stays until the nodes that came know why there is no job.
  void hear_of_error() {
    const auto soon = Deadline::after(2s);
    try {
      store_->set(kHeardPrefix + std::to_string(options_.node_rank), "", soon);
      std::vector<std::string> heard;
      for (const std::string& node : store_->list(kNodePrefix, soon)) {
        heard.push_back(kHeardPrefix + node.substr(sizeof kNodePrefix - 1));
      }
      if (options_.node_rank == 0) store_->wait(heard, soon);
    } catch (const Error&) {
      // One that went away need not hear it.
    }
  }

  RunOptions options_;
  std::string secret_;
  Deadline deadline_;
  std::optional<ReservedPort> master_port_;
  std::optional<TcpStoreServer> server_;
  std::shared_ptr<Store> store_;
  JobPlan plan_;
  std::optional<JobWatch> watch_;  // last: its end talks to the store
};

}  // namespace

std::unique_ptr<Rendezvous> make_static_rendezvous(const RunOptions& options,
                                                   const std::string& secret) {
  return std::make_unique<StaticRendezvous>(options, secret);
}

}  // namespace lockstep
