// The options of torchrun 2.13 (torch/distributed/run.py), each with a value that it takes.
// Lockstep takes each of them too, or refuses it by its name with a reason.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "lockstep/error.h"
#include "lockstep/launch/job/run_options.h"

namespace lockstep {
namespace {

struct TorchrunOption {
  std::string name;   ///< With `_`, as in PET_NAME.
  std::string value;  ///< Empty: a flag.
  bool variable;      ///< torchrun reads PET_NAME: action=env or check_env.
  std::string refusal = "";
};

const std::vector<TorchrunOption>& options_of_torchrun() {
  static const std::vector<TorchrunOption> kOptions = {
      {"nnodes", "1", true},
      {"nproc_per_node", "2", true},
      {"nproc_per_node", "auto", true},
      {"nproc_per_node", "cpu", true},
      {"nproc_per_node", "gpu", true},
      {"nproc_per_node", "xpu", true, "Intel GPUs are not counted; give their number"},
      {"rdzv_backend", "static", true},
      {"rdzv_backend", "c10d", true},
      {"rdzv_endpoint", "localhost:29400", true},
      {"rdzv_id", "night", true},
      {"rdzv_conf", "timeout=60", true},
      {"standalone", "", true},
      {"max_restarts", "3", true},
      {"monitor_interval", "0.1", true},
      {"start_method", "spawn", true},
      {"start_method", "fork", true},
      {"start_method", "forkserver", true},
      {"event_log_handler", "null", true},
      {"event_log_handler", "console", true, "events are lines on the console"},
      {"role", "trainer", true},
      {"module", "", true},
      {"no_python", "", true},
      {"run_path", "", true},
      {"log_dir", "logs", true},
      {"redirects", "0", true},
      {"tee", "0", true},
      {"local_ranks_filter", "0", true},
      {"duplicate_stdout_filters", "apple,orange", true},
      {"duplicate_stderr_filters", "apple,orange", true},
      {"node_rank", "0", true},
      {"master_addr", "127.0.0.1", true},
      {"master_port", "29500", true},
      {"local_addr", "127.0.0.1", true},
      {"logs_specs", "default", false},
      {"logs_specs", "other", false, "lines go to the console and, with --log_dir, to files"},
      {"numa_binding", "node", false},
      {"numa_binding", "socket", false},
      {"numa_binding", "exclusive", false},
      {"numa_binding", "core-complex", false},
      {"signals_to_handle", "SIGTERM,SIGUSR1", true},
      {"shutdown_timeout", "5", true},
      {"virtual_local_rank", "", true},
  };
  return kOptions;
}

/// The message of the refusal; empty if the words are taken.
std::string refusal(const std::vector<std::string>& words, const Environment& environment) {
  try {
    const auto options = parse_run_options(words, environment, [] { return HostResources{8, 2}; });
    EXPECT_EQ(options.command, std::vector<std::string>{"p"});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

void expect_refusal(const std::string& said, const std::string& name, const std::string& reason) {
  if (reason.empty()) {
    EXPECT_EQ(said, "");
    return;
  }
  EXPECT_EQ(said.find(name), 0U) << said;
  EXPECT_NE(said.find("is not supported: " + reason), std::string::npos) << said;
}

TEST(TorchrunOptions, EachIsTakenOrRefusedByNameInBothSpellings) {
  for (const TorchrunOption& option : options_of_torchrun()) {
    std::string dashes = option.name;
    std::replace(dashes.begin(), dashes.end(), '_', '-');
    for (const std::string& name : {"--" + option.name, "--" + dashes}) {
      SCOPED_TRACE(name + " " + option.value);
      std::vector<std::string> words = {name, option.value, "p"};
      if (option.value.empty()) words.erase(words.begin() + 1);
      expect_refusal(refusal(words, {}), name, option.refusal);
    }
  }
}

TEST(TorchrunOptions, EachVariableOfTorchrunIsReadAndNoOther) {
  for (const TorchrunOption& option : options_of_torchrun()) {
    std::string variable = "PET_" + option.name;
    std::transform(variable.begin(), variable.end(), variable.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    SCOPED_TRACE(variable + "=" + option.value);
    const std::string value = option.value.empty() ? "1" : option.value;
    expect_refusal(refusal({"p"}, {{variable, value}}), variable,
                   option.variable ? option.refusal : "");
  }
}

/// torchrun sets TORCHELASTIC_SIGNALS_TO_HANDLE for its workers and never reads it.
TEST(TorchrunOptions, SignalsComeFromTheOptionAndItsVariableAlone) {
  const auto names = [](const std::vector<std::string>& words, const Environment& environment) {
    return parse_run_options(words, environment, [] { return HostResources{}; }).signals_to_handle;
  };
  Environment environment = {{"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGUSR1"}};
  EXPECT_EQ(names({"p"}, environment), "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
  environment["PET_SIGNALS_TO_HANDLE"] = "SIGUSR2,SIGTERM";
  EXPECT_EQ(names({"p"}, environment), "SIGUSR2,SIGTERM");
  EXPECT_EQ(names({"--signals-to-handle", "SIGINT", "p"}, environment), "SIGINT");
}

TEST(TorchrunOptions, TheShutdownTimeoutHasThreeSourcesAndADefault) {
  using std::chrono::seconds;
  const auto timeout = [](const std::vector<std::string>& words, const Environment& environment) {
    return parse_run_options(words, environment, [] { return HostResources{}; }).shutdown_timeout;
  };
  Environment environment;
  EXPECT_EQ(timeout({"p"}, environment), seconds(30));
  environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = "7";
  EXPECT_EQ(timeout({"p"}, environment), seconds(7));
  environment["PET_SHUTDOWN_TIMEOUT"] = "8";
  EXPECT_EQ(timeout({"p"}, environment), seconds(8));
  EXPECT_EQ(timeout({"--shutdown-timeout", "9", "p"}, environment), seconds(9));
}

}  // namespace
}  // namespace lockstep
