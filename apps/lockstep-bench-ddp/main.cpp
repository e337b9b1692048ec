// lockstep bench ddp: time of a training step, with or without gradients averaged over the ranks.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/lockstep-bench-ddp/measure.h"
#include "apps/lockstep-bench-ddp/ranks.h"
#include "lockstep/base/file.h"
#include "lockstep/base/options.h"
#include "lockstep/base/quick_end.h"
#include "lockstep/comm_hook.h"
#include "lockstep/error.h"
#include "lockstep/spawn.h"
#include "lockstep/world.h"
#include "lockstep/world/host_load.h"
#include "lockstep/world/join/this_process.h"

namespace {

using lockstep::bench::Measured;
using lockstep::bench::MeasureSpec;
using nlohmann::json;

struct Options {
  MeasureSpec spec{.model = "resnet50"};
  std::string mode = "ddp";
  int ranks = 2;
  bool ranks_given = false, help = false;
  std::string json_path;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string rank_result(const lockstep::World& world, const MeasureSpec& spec) {
  const Measured measured = lockstep::bench::measure(world, spec);
  return json{{"batch", measured.batch},
              {"parts", measured.parts},
              {"steps", measured.step_ms.size()},
              {"min", *std::min_element(measured.step_ms.begin(), measured.step_ms.end())},
              {"p50", median(measured.step_ms)},
              {"exposed", median(measured.exposed_ms)},
              {"page_faults", measured.page_faults}}
      .dump();
}

/// images_per_s is the sum over the ranks; the other figures are those of the worst rank.
json summary(const Options& options, const std::vector<std::string>& results) {
  json row = {{"bench", "ddp"},         {"model", options.spec.model},
              {"mode", options.mode},   {"comm_hook", options.spec.comm_hook},
              {"ranks", options.ranks}, {"virtual_ranks", options.spec.virtual_ranks}};
  double min_ms = 0, p50_ms = 0, exposed_ms = 0, images = 0, page_faults = 0;
  for (const std::string& text : results) {
    const json result = json::parse(text);
    row["batch"] = result["batch"];
    row["steps"] = result["steps"];
    min_ms = std::max(min_ms, result["min"].get<double>());
    p50_ms = std::max(p50_ms, result["p50"].get<double>());
    exposed_ms = std::max(exposed_ms, result["exposed"].get<double>());
    page_faults = std::max(page_faults, result["page_faults"].get<double>());
    images += 1e3 * result["batch"].get<double>() * result["parts"].get<double>() /
              result["p50"].get<double>();
  }
  row.update({{"step_ms_min", min_ms},
              {"step_ms_p50", p50_ms},
              {"images_per_s", images},
              {"comm_exposed_ms", exposed_ms},
              {"page_faults_per_step", page_faults}});
  return row;
}

const std::vector<std::string> kModes = {"ddp", "independent"};

lockstep::OptionGroup<Options> ddp_options() {
  using R = Options;
  using Text = const std::string&;
  using Shown = std::vector<std::string>;
  using lockstep::default_text;
  using lockstep::one_of;
  using lockstep::OptionKind;
  using lockstep::parse_int;
  using lockstep::shows;
  return {
      "",
      {{"model", 0, OptionKind::kValue, "NAME",
        "the network: resnet50, mlp3m, mlp50m or transformer25m (default {})",
        [](R& options, Text value, Text what) {
          options.spec.model = one_of(lockstep::bench::model_names(), value, what);
        },
        [](const R& options) { return Shown{options.spec.model}; }},
       {"mode", 0, OptionKind::kValue, "NAME",
        "ddp: gradients averaged; independent: without communication, the bound (default {})",
        [](R& options, Text value, Text what) { options.mode = one_of(kModes, value, what); },
        shows<&R::mode>},
       {"ranks", 0, OptionKind::kValue, "N", "processes, one thread each (1 to 1024; default {})",
        [](R& options, Text value, Text what) {
          options.ranks = static_cast<int>(parse_int(value, 1, 1024, what));
          options.ranks_given = true;
        },
        shows<&R::ranks>},
       {"steps", 0, OptionKind::kValue, "N", "measured steps (default: by model)",
        [](R& options, Text value, Text what) {
          options.spec.steps = static_cast<int>(parse_int(value, 1, 1000000, what));
        }},
       {"warmup", 0, OptionKind::kValue, "N", "steps before (default: by model)",
        [](R& options, Text value, Text what) {
          options.spec.warmup = static_cast<int>(parse_int(value, 0, 1000000, what));
        }},
       {"bucket_cap_mb", 0, OptionKind::kValue, "X",
        "bound of a gradient bucket, MiB (above 0; default {})",
        [](R& options, Text value, Text what) {
          options.spec.bucket_cap_mb = lockstep::parse_real(value, 1e-6, 1e6, what);
        },
        [](const R& options) { return Shown{default_text(options.spec.bucket_cap_mb)}; }},
       {"comm_hook", 0, OptionKind::kValue, "NAME",
        "how gradients travel: none, auto, fp16, bf16, int8 or powersgd (default {})",
        [](R& options, Text value, Text what) {
          options.spec.comm_hook = one_of(lockstep::comm_hook_names(), value, what);
        },
        [](const R& options) { return Shown{options.spec.comm_hook}; }},
       {"virtual_ranks", 0, OptionKind::kValue, "N",
        "parts of the global batch, dealt to the ranks; 0: one a rank (default {})",
        [](R& options, Text value, Text what) {
          options.spec.virtual_ranks = static_cast<int>(parse_int(value, 0, 1 << 20, what));
        },
        [](const R& options) { return Shown{default_text(options.spec.virtual_ranks)}; }},
       {"json", 0, OptionKind::kValue, "FILE", "write the result to this file",
        lockstep::set_text<&R::json_path>},
       lockstep::help_option<R>()}};
}

int print_help() {
  return lockstep::print_help(
      {{{"lockstep bench ddp [OPTIONS]", ""}},
       "Time of a training step of ranks that this command starts here, or of those that a "
       "launcher has started, this process being one.",
       {help_group(ddp_options())},
       ""});
}

void report(const Options& options, const json& row) {
  std::string hook =
      options.spec.comm_hook == "none" ? "" : fmt::format(" ({})", options.spec.comm_hook);
  if (options.spec.virtual_ranks > 0) {
    hook += fmt::format(" ({} virtual ranks)", options.spec.virtual_ranks);
  }
  fmt::print(
      "{} {}{} x{} batch {}: step min {:.2f} ms, p50 {:.2f} ms, {:.1f} images/s, "
      "communication exposed {:.2f} ms, {:.0f} page faults a step\n",
      options.spec.model, options.mode, hook, options.ranks, row["batch"].get<int>(),
      row["step_ms_min"].get<double>(), row["step_ms_p50"].get<double>(),
      row["images_per_s"].get<double>(), row["comm_exposed_ms"].get<double>(),
      row["page_faults_per_step"].get<double>());
  if (options.json_path.empty()) return;
  lockstep::write_file_atomically(options.json_path, json::array({row}).dump(2) + "\n");
}

/// One rank of the job that a launcher has started. Rank 0 reports.
void run_launched(Options options) {
  const lockstep::World world = lockstep::World::join();
  if (options.ranks_given && options.ranks != world.size) {
    throw lockstep::Error(
        lockstep::ErrorCode::kInvalidArgument,
        fmt::format("--ranks {}: the launcher has started {} ranks; leave --ranks out",
                    options.ranks, world.size));
  }
  options.ranks = world.size;
  const auto key = [](int rank) { return fmt::format("bench/result/{}", rank); };
  const auto limit = lockstep::Deadline::after(std::chrono::seconds(300));
  world.store->set(key(world.rank), rank_result(world, options.spec), limit);
  std::vector<std::string> results;
  for (int rank = 0; world.rank == 0 && rank < world.size; ++rank) {
    results.push_back(world.store->get(key(rank), limit));
  }
  if (world.rank == 0) report(options, summary(options, results));
  // Rank 0 may hold the store.
  lockstep::store_barrier(*world.store, "bench/end", world.rank, world.size, limit);
}

int body(int argc, char** argv) {
  Options options;
  lockstep::read_only_options({argv + 1, argv + argc}, ddp_options().options, "lockstep bench ddp",
                              options);
  if (options.help) return print_help();
  options.spec.distributed = options.mode == "ddp";
  if (!options.json_path.empty()) lockstep::check_output_file(options.json_path);
  lockstep::warn_if_busy();
  if (lockstep::is_launched()) {
    run_launched(options);
    return 0;
  }
  const auto results = lockstep::bench::run_ranks(
      options.ranks,
      [&options](const lockstep::World& world) { return rank_result(world, options.spec); });
  report(options, summary(options, results));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::start_fork_server();
  lockstep::end_without_teardown();
  return lockstep::run_main("lockstep bench ddp", body, argc, argv);
}
