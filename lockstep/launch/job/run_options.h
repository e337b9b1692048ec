#pragma once
// The command line of `lockstep run`: torchrun's names, parsed by a pure function.

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/launch/job/host_resources.h"
#include "lockstep/launch/job/rendezvous_conf.h"
#include "lockstep/world/environment.h"
#include "lockstep/world/identity.h"

namespace lockstep::inline internal {

struct Streams {
  bool out = false;
  bool err = false;
  bool any() const { return out || err; }
};

/// One choice for all local ranks, or one for each named rank and none for the others.
class StreamMap {
 public:
  StreamMap() = default;

  /// torchrun's grammar: V, or LOCAL_RANK:V,LOCAL_RANK:V,... where V is 0 (none), 1 (stdout), 2
  /// (stderr) or 3 (both). Unlike torchrun's, local ranks may have any number of digits.
  /// Errors: kInvalidArgument naming `what`.
  static StreamMap parse(const std::string& text, const std::string& what);

  Streams of(int local_rank) const;
  bool any() const;
  /// The highest local rank named; -1 if none is.
  int highest() const { return by_rank_.empty() ? -1 : by_rank_.rbegin()->first; }

 private:
  Streams all_;
  std::map<int, Streams> by_rank_;
};

struct Inputs;

/// Kind of program that follows the options.
enum class ProgramKind {
  kProgram,     ///< An executable; a script that ends in .py is run by Python.
  kExecutable,  ///< --no_python: an executable whatever its name.
  kModule,      ///< -m: a Python module.
  kRunPath,     ///< --run_path: a Python script, run by runpy.
};

/// Of --master_port with several hosts, as torch's.
constexpr int kTorchPort = 29500;

/// Of --log_rate where the console is a terminal.
constexpr int kTerminalLinesASecond = 1000;

/// As --log_dir: torchrun's value for no files at all.
constexpr char kNoFiles[] = "/dev/null";

struct RunOptions : RendezvousConf {
  int nproc_per_node = 1;
  bool nproc_given = false;
  bool nodes_given = false;  ///< The number of hosts was given, even if it is 1.
  int num_nodes = 1;         ///< MAX of --nnodes MIN:MAX.
  int min_nodes = 1;         ///< MIN; equal to num_nodes where --nnodes is one number.
  int node_rank = 0;         ///< Below num_nodes. Needed with static; a wish with other backends.
  bool node_rank_given = false;

  std::string rdzv_backend = "static";  ///< static, c10d (built in), etcd, etcd-v2, file.
  /// As given; empty if there is no other host to meet. etcd: HOST[:PORT],..., whose "https://" is
  /// in `https`; file: the folder.
  std::string rdzv_endpoint;
  /// static: host of the store, which host 0's agent serves; c10d: host of the endpoint.
  std::string master_addr = "127.0.0.1";
  bool master_addr_given = false;
  int master_port = 0;  ///< 0 (one host only): any free port.
  /// False: TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, see TorchStorePort.
  bool share_torch_store = true;
  std::string port_range;    ///< FIRST-LAST: LOCKSTEP_PORT_RANGE of agents and ranks; or empty.
  std::string local_addr;    ///< Address that this host's ranks advertise; empty: detected.
  std::string run_id;        ///< Empty: generated.
  Wire wire = Wire::kPlain;  ///< LOCKSTEP_TLS=1: of agents' and workers' connections to others.

  std::string hosts;      ///< --host: start agents there; empty: this process is an agent.
  std::string host_file;  ///< --hostfile: the same, from a file.
  int total_ranks = 0;    ///< -n; 0: not given.
  bool oversubscribe = false;
  /// To reach another host. Without a packet for a while a firewall may forget the connection, and
  /// ranks may print nothing for hours. After two minutes without an answer ssh gives up.
  std::string rsh =
      "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 "
      "-o ServerAliveCountMax=8";
  std::vector<std::string> exported;  ///< -x: NAME or NAME=VALUE.
  std::string work_folder;            ///< --wdir; empty: this one.
  bool started_by_starter = false;    ///< Reports of failures go to the starter.

  int max_restarts = 0;  ///< Generations that may fail without ending the job.
  std::string role = "default";
  /// Empty: nothing is written to disk. kNoFiles: not even workers' error files.
  std::string log_dir;
  StreamMap redirects;               ///< To files instead of the console.
  StreamMap tee;                     ///< To files and the console.
  std::set<int> local_ranks_filter;  ///< Console only; empty: all.
  /// A line that contains one of these also goes to ATTEMPT/filtered_stdout.log, for all local
  /// ranks; likewise for stderr.
  std::vector<std::string> stdout_filters, stderr_filters;
  std::chrono::milliseconds shutdown_timeout{30000};  ///< From SIGTERM to SIGKILL.
  bool raw = false;                 ///< Output is shown as it comes, without prefixes.
  bool no_fold = false;             ///< Identical lines of many ranks are shown one by one.
  std::optional<int> log_rate;      ///< Lines a second of each rank on the console; 0: all.
  bool virtual_local_rank = false;  ///< Every worker: LOCAL_RANK 0, one device.
  CoreBinding core_binding = CoreBinding::kNone;
  /// The CPUs that core_binding gives each local rank on this host; empty: all CPUs for all.
  std::vector<std::vector<int>> cpus_of_ranks;
  /// Forwarded, and end the job. SIGUSR1 and SIGUSR2 are forwarded only, unless they are here.
  std::set<int> ending_signals = default_ending_signals();
  bool signals_named = false;  ///< The user named them: caught even if they were ignored.
  /// Their names, in the order of the option, for the workers.
  std::string signals_to_handle = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  ProgramKind program_kind = ProgramKind::kProgram;
  bool pass_local_rank = false;  ///< The program's first argument is --local-rank=N.
  bool help = false;
  std::vector<std::string> command;   ///< Program and its arguments, as given.
  std::string program;                ///< program_name() of `command`.
  std::string program_and_arguments;  ///< program_and_arguments() of `command`.

  static std::set<int> default_ending_signals();  ///< TERM, INT, HUP, QUIT.
};

/// Reads the words after `lockstep run`. Options end at "--" or at the first word that is none; `-`
/// and `_` are the same inside names. PET_NAME is the default of an option; other variables are
/// those of `wire`, `share_torch_store` and, as torchrun's, of --shutdown_timeout. `resources` is
/// only called if an option depends on it: the look takes a tenth of a launch. Errors:
/// kInvalidArgument naming the option (and the nearest one, for a misspelt name).
RunOptions parse_run_options(const std::vector<std::string>& words, const Environment& environment,
                             const std::function<HostResources()>& resources);

/// Agents that a step of srun has started, one a host, form one job unless options differ. Number,
/// rank and rendezvous endpoint are the step's. Changes nothing for other processes. Returns the
/// step if its agents have no secret and can get one by munge. Errors: kInvalidArgument if the step
/// has several agents on a host.
std::optional<Identity> take_hosts_of_step(const Inputs& inputs, RunOptions* options);

/// The options of `words` and PET_ variables as "--name=value", then "--" and the program: for an
/// agent on another host. Leaves out options that choose hosts and numbers of ranks.
std::vector<std::string> words_for_agent(const std::vector<std::string>& words,
                                         const Environment& environment);

/// The options, aligned, for --help.
std::string run_options_help();

}  // namespace lockstep::inline internal
