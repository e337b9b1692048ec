// Rules about several options of `lockstep run` together.

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/counted.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/job/run_option_table.h"
#include "lockstep/world/detect/decision.h"
#include "lockstep/world/torch_store.h"

namespace lockstep::inline internal {
namespace {

constexpr int kElasticPort = 29400;

void decide_program(RunOptionsDraft* draft) {
  if (draft->module && (draft->no_python || draft->run_path)) {
    refuse_options(fmt::format("--module and --{} exclude each other",
                               draft->no_python ? "no_python" : "run_path"));
  }
  ProgramKind& kind = draft->options.program_kind;
  if (draft->no_python) kind = ProgramKind::kExecutable;
  if (draft->run_path) kind = ProgramKind::kRunPath;
  if (draft->module) kind = ProgramKind::kModule;
}

/// `total` / `by` of -n; refuses a number that does not divide, with the name of its option.
int divided(int total, int by, const char* what) {
  if (total % by != 0 || total < by) {
    refuse_options(fmt::format("-n {} is not a multiple of {} {}", total, what, by));
  }
  return total / by;
}

/// Takes msrun's and mpirun's names of --nproc_per_node.
void take_local_worker_num(RunOptionsDraft* draft) {
  RunOptions& options = draft->options;
  if (draft->local_worker_num == 0) return;
  if (options.nproc_given && options.nproc_per_node != draft->local_worker_num) {
    refuse_options("--nproc_per_node and --local_worker_num (or -N) mean the same; give one");
  }
  options.nproc_per_node = draft->local_worker_num;
  options.nproc_given = true;
}

/// Applies -n if this command starts no other hosts.
void decide_ranks(RunOptionsDraft* draft) {
  RunOptions& options = draft->options;
  if (options.total_ranks == 0) return;
  if (!options.nproc_given) {
    options.nproc_per_node = divided(options.total_ranks, options.num_nodes, "--nnodes");
    return;
  }
  const int nodes = divided(options.total_ranks, options.nproc_per_node, "the ranks of a host,");
  if (draft->nnodes_given && nodes != options.num_nodes) {
    refuse_options(fmt::format("-n {} is not --nnodes {} times {}", options.total_ranks,
                               options.num_nodes, counted(options.nproc_per_node, "rank")));
  }
  options.num_nodes = options.min_nodes = nodes;
}

/// With --host or --hostfile this command starts the agents, whose roles follow from the list.
bool starts_hosts(const RunOptionsDraft& draft) {
  const RunOptions& options = draft.options;
  if (options.hosts.empty() && options.host_file.empty()) return false;
  const char* name = options.hosts.empty() ? "--hostfile" : "--host";
  if (!options.hosts.empty() && !options.host_file.empty()) {
    refuse_options("--host and --hostfile mean the same; give one");
  }
  const char* clash = draft.nnodes_given        ? "--nnodes"
                      : options.node_rank_given ? "--node_rank"
                      : draft.standalone        ? "--standalone"
                                                : nullptr;
  if (clash != nullptr) {
    refuse_options(fmt::format("{} already gives the hosts; leave {} away", name, clash));
  }
  return true;
}

void decide_hosts(RunOptionsDraft* draft) {
  RunOptions& options = draft->options;
  if (draft->standalone) {
    if (options.min_nodes > 1) {
      refuse_options(
          fmt::format("--standalone is one host, but --nnodes is {}", options.min_nodes));
    }
    // As torchrun: the rendezvous of several hosts is ignored then.
    options.num_nodes = 1;
    options.rdzv_endpoint.clear();
    options.rdzv_backend = "static";
    options.file_store = false;
  }
  if (options.conf_rank) {
    if (options.node_rank_given && options.node_rank != *options.conf_rank) {
      refuse_options(fmt::format("--node_rank {} and --rdzv_conf rank={} differ; give one",
                                 options.node_rank, *options.conf_rank));
    }
    options.node_rank = *options.conf_rank;
    options.node_rank_given = true;
  }
  if (options.node_rank >= options.num_nodes) {
    refuse_options(fmt::format("--node_rank {} must be below --nnodes {}", options.node_rank,
                               options.num_nodes));
  }
}

void decide_backend(RunOptionsDraft* draft) {
  RunOptions& options = draft->options;
  const bool fixed = options.min_nodes == options.num_nodes;
  std::string& backend = options.rdzv_backend;
  if (options.file_store) {
    if (draft->backend_given && backend != "c10d" && backend != "file") {
      refuse_options(
          fmt::format("--rdzv_conf store_type=file does not go with --rdzv_backend {}", backend));
    }
    backend = "file";
  } else if (!fixed && !draft->backend_given) {
    backend = "c10d";
  }
  if (backend == "static" && !fixed && options.num_nodes > 1) {
    refuse_options(fmt::format(
        "--nnodes {}:{}: with --rdzv_backend static the number of hosts is fixed; use c10d",
        options.min_nodes, options.num_nodes));
  }
}

Endpoint endpoint_of(const RunOptions& options) {
  std::string text = options.rdzv_endpoint;
  if (text.empty() || text[0] == ':') text.insert(0, "localhost");
  return parse_endpoint(text, 0);
}

void use_static_endpoint(RunOptionsDraft* draft) {
  RunOptions& options = draft->options;
  if (!options.rdzv_endpoint.empty()) {
    const Endpoint endpoint = endpoint_of(options);
    if ((options.master_addr_given && options.master_addr != endpoint.host) ||
        (draft->master_port_given && options.master_port != endpoint.port)) {
      refuse_options(
          fmt::format("--rdzv_endpoint {} and --master_addr, --master_port mean the "
                      "same, but differ; give one",
                      options.rdzv_endpoint));
    }
    options.master_addr = endpoint.host;
    options.master_port = endpoint.port;
  }
  if (options.num_nodes > 1 && options.master_port == 0) options.master_port = kTorchPort;
}

void use_built_in_endpoint(RunOptionsDraft* draft) {
  RunOptions& options = draft->options;
  const bool given = !options.rdzv_endpoint.empty();
  const Endpoint endpoint = endpoint_of(options);  // checked even if there is no other host to meet
  if (options.num_nodes == 1) return;
  if (!given && !options.master_addr_given) {
    refuse_options(
        fmt::format("several hosts need --rdzv_endpoint HOST[:PORT], the address of one of them"));
  }
  if (given) {
    options.master_addr = endpoint.host;
    options.master_port = endpoint.port;
  }
  if (options.master_port == 0) options.master_port = kElasticPort;
}

/// "https://a:2379,b:2379" as protocol=https and "a:2379,b:2379".
void take_protocol(RunOptions* options) {
  std::vector<std::string> members;
  bool https = options->https;
  bool http = false;
  for (std::string member : split(options->rdzv_endpoint, ',')) {
    const size_t colon = member.find("://");
    if (colon != std::string::npos) {
      const std::string protocol = member.substr(0, colon);
      if (protocol != "http" && protocol != "https") {
        refuse_options(fmt::format("--rdzv_endpoint {}: '{}' is neither http nor https",
                                   options->rdzv_endpoint, protocol));
      }
      https = https || protocol == "https";
      http = http || protocol == "http";
      member.erase(0, colon + 3);
      if (member.ends_with('/')) member.pop_back();
    }
    members.push_back(std::move(member));
  }
  if (http && https) {
    refuse_options(fmt::format(
        "--rdzv_endpoint {}: http:// does not go with https:// or --rdzv_conf protocol=https; give "
        "one",
        options->rdzv_endpoint));
  }
  options->rdzv_endpoint = fmt::format("{}", fmt::join(members, ","));
  options->https = https;
}

void decide_endpoint(RunOptionsDraft* draft) {
  RunOptions& options = draft->options;
  if (options.rdzv_backend == "static") return use_static_endpoint(draft);
  if (options.rdzv_backend == "c10d") return use_built_in_endpoint(draft);
  if (options.rdzv_endpoint.empty() && options.num_nodes > 1) {
    refuse_options(fmt::format(
        "--rdzv_backend {} needs --rdzv_endpoint {}", options.rdzv_backend,
        options.rdzv_backend == "file" ? "FOLDER, one that all hosts share" : "HOST[:PORT]"));
  }
  if (options.rdzv_backend != "file") take_protocol(&options);
}

void check_streams(const RunOptions& options) {
  const int highest =
      std::max({options.redirects.highest(), options.tee.highest(),
                options.local_ranks_filter.empty() ? -1 : *options.local_ranks_filter.rbegin()});
  if (highest >= options.nproc_per_node) {
    refuse_options(
        fmt::format("there is no local rank {} to choose the output of: --nproc_per_node is {}",
                    highest, options.nproc_per_node));
  }
}

}  // namespace

std::optional<Identity> take_hosts_of_step(const Inputs& inputs, RunOptions* options) {
  if (options->nodes_given) return std::nullopt;
  const Decision decision = decide(inputs);
  const Identity& step = decision.identity;
  if (step.launcher != "slurm" || step.size == 1) return std::nullopt;
  if (step.size != step.num_nodes) {
    refuse_options(
        fmt::format("srun has started this {} times on {}: start one a node (srun "
                    "--ntasks-per-node=1), or the program itself by srun; for a job of its own "
                    "each, give --standalone",
                    step.size, counted(step.num_nodes, "node")));
  }
  if (!options->master_addr_given && step.master.host.empty()) {
    refuse_options(
        "the step of srun does not show which node has its first task: give --nnodes, --node_rank "
        "and --master_addr");
  }
  options->num_nodes = options->min_nodes = step.num_nodes;
  options->node_rank = step.node_rank;
  options->node_rank_given = true;
  if (!options->master_addr_given) options->master_addr = step.master.host;
  if (options->master_port == 0) options->master_port = store_ports(step).front();
  if (options->run_id.empty()) options->run_id = step.job_id;
  const bool by_munge = std::count(step.channels.begin(), step.channels.end(), Channel::kMunge) > 0;
  return by_munge ? std::optional(step) : std::nullopt;
}

RunOptions put_together(RunOptionsDraft draft) {
  RunOptions& options = draft.options;
  if (options.help) return options;
  if (options.command.empty()) {
    refuse_options("no program given: lockstep run [OPTIONS] [--] PROGRAM [ARGS]");
  }
  decide_program(&draft);
  take_local_worker_num(&draft);
  if (starts_hosts(draft)) return options;
  options.nodes_given = draft.nnodes_given || draft.standalone || options.node_rank_given ||
                        options.conf_rank || !options.rdzv_endpoint.empty() ||
                        options.total_ranks > 0;
  decide_ranks(&draft);
  decide_hosts(&draft);
  decide_backend(&draft);
  decide_endpoint(&draft);
  check_streams(options);
  if (!options.log_dir.empty() && !draft.streams_given) {
    options.tee = StreamMap::parse("3", "--tee");
  }
  return options;
}

std::set<int> RunOptions::default_ending_signals() {
  return {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
}

}  // namespace lockstep::inline internal
