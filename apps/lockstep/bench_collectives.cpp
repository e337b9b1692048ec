#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/lockstep/collectives_bench.h"
#include "apps/lockstep/verbs.h"
#include "lockstep/base/counted.h"
#include "lockstep/base/file.h"
#include "lockstep/base/options.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/group/backends.h"
#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/error.h"
#include "lockstep/world/host_load.h"
#include "lockstep/world/identity.h"
#include "lockstep/world/join/this_process.h"

namespace lockstep::app {
namespace {

nlohmann::json to_json(const CollectivesBench& bench, const CollectivesResult& result) {
  return {{"bench", "collectives"},
          {"op", bench.op},
          {"backend", bench.backend},
          {"memory", bench.memory},
          {"ranks", bench.ranks},
          {"bytes", result.bytes},
          {"dtype", "float32"},
          {"min_us", result.min_us},
          {"p50_us", result.p50_us},
          {"p99_us", result.p99_us},
          {"algbw_gbs", result.algbw_gbs},
          {"busbw_gbs", result.busbw_gbs},
          {"ceiling_gbs", result.ceiling_gbs > 0 ? nlohmann::json(result.ceiling_gbs) : nullptr}};
}

void print_head(const CollectivesBench& bench) {
  fmt::print("{} of float32, {}, back end {}, {} memory, {} kernels\n", bench.op,
             counted(bench.ranks, "rank"), bench.backend, bench.memory,
             to_string(best_instruction_set()));
  fmt::print("{:>10} {:>11} {:>11} {:>11} {:>11} {:>11} {:>13} {:>5}\n", "size", "min us", "p50 us",
             "p99 us", "algbw GB/s", "busbw GB/s", "ceiling GB/s", "%");
}

void print_row(const CollectivesResult& result) {
  fmt::print("{:>10} {:>11.2f} {:>11.2f} {:>11.2f} {:>11.2f} {:>11.2f}", format_bytes(result.bytes),
             result.min_us, result.p50_us, result.p99_us, result.algbw_gbs, result.busbw_gbs);
  if (result.ceiling_gbs > 0) {
    fmt::print(" {:>13.2f} {:>5.0f}\n", result.ceiling_gbs,
               result.algbw_gbs / result.ceiling_gbs * 100);
  } else {
    fmt::print(" {:>13} {:>5}\n", "-", "-");
  }
  std::fflush(stdout);
}

/// Prints results and keeps them for the file.
class Report {
 public:
  Report(const CollectivesBench& bench, std::string json_file)
      : bench_(bench), json_file_(std::move(json_file)) {}
  void add(const CollectivesResult& result) {
    print_row(result);
    all_.push_back(to_json(bench_, result));
  }
  void finish() {
    if (!json_file_.empty()) write_file_atomically(json_file_, all_.dump(2) + "\n");
  }

 private:
  const CollectivesBench& bench_;
  std::string json_file_;
  nlohmann::json all_ = nlohmann::json::array();
};

/// In a program without libtorch: executes the program with libtorch if `backend` is one of
/// libtorch's. Returns if there is no such program.
void hand_over_to_libtorch(const std::string& backend, const std::vector<std::string>& args) {
  const auto is_libtorchs = [](std::string_view name) { return name.starts_with("c10d:"); };
  for (const auto& each : backends()) {
    if (is_libtorchs(each.name)) return;
  }
  if (is_libtorchs(backend)) execute_beside("lockstep-bench-collectives", args);
}

int run_launched(CollectivesBench bench, bool ranks_given, const std::string& json_file) {
  const World world = World::join();
  if (ranks_given && bench.ranks != world.size) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--ranks {}: the launcher has started {}; leave --ranks out",
                            bench.ranks, counted(world.size, "rank")));
  }
  bench.ranks = world.size;
  bench.steady = true;
  if (world.rank == 0) print_head(bench);
  Report report(bench, json_file);
  run_collectives_rank(
      world, bench, [&](const CollectivesResult& result) { report.add(result); },
      [&] { report.finish(); });
  return 0;
}

struct Request {
  CollectivesBench bench;
  std::string sizes = "4:256M", json_file;
  bool ranks_given = false, help = false;
};

const std::vector<std::string> kMemories = {"own", "user"};

OptionGroup<Request> bench_options() {
  using R = Request;
  using Text = const std::string&;
  constexpr auto kValue = OptionKind::kValue;
  return {
      "",
      {{"op", 0, kValue, "NAME",
        "operation: all_reduce, all_gather, reduce_scatter, broadcast, barrier or send (default "
        "{})",
        [](R& request, Text value, Text what) {
          request.bench.op = one_of(bench_ops(), value, what);
        },
        [](const R& request) { return std::vector{request.bench.op}; }},
       {"ranks", 0, kValue, "N", "processes to start (1 to 256; default {})",
        [](R& request, Text value, Text what) {
          request.bench.ranks = static_cast<int>(parse_int(value, 1, 256, what));
          request.ranks_given = true;
        },
        [](const R& request) { return std::vector{default_text(request.bench.ranks)}; }},
       {"backend", 0, kValue, "NAME", "back end, or auto (default {})",
        [](R& request, Text value, Text) { request.bench.backend = value; },
        [](const R& request) { return std::vector{request.bench.backend}; }},
       {"memory", 0, kValue, "NAME", "own: the back end's; user: ordinary memory (default {})",
        [](R& request, Text value, Text what) {
          request.bench.memory = one_of(kMemories, value, what);
        },
        [](const R& request) { return std::vector{request.bench.memory}; }},
       {"sizes", 0, kValue, "LIST", "FROM:TO doubling, or a list: 25M,64M (default {})",
        set_text<&R::sizes>, shows<&R::sizes>},
       {"seconds", 0, kValue, "X", "time for each size (0.01 to 600; default {})",
        [](R& request, Text value, Text what) {
          request.bench.seconds = parse_real(value, 0.01, 600, what);
        },
        [](const R& request) { return std::vector{default_text(request.bench.seconds)}; }},
       {"rounds", 0, kValue, "N", "at least so many for each size (1 to 1000000; default {})",
        [](R& request, Text value, Text what) {
          request.bench.rounds = static_cast<int>(parse_int(value, 1, 1'000'000, what));
        },
        [](const R& request) { return std::vector{default_text(request.bench.rounds)}; }},
       {"json", 0, kValue, "FILE", "also write the results to this file", set_text<&R::json_file>},
       help_option<R>()}};
}

int print_bench_help() {
  return print_help(
      {{{"lockstep bench collectives [OPTIONS]", ""}},
       "Time collectives between ranks that this command starts here, or between the ranks that a "
       "launcher has started, this process being one.",
       {help_group(bench_options())},
       ""});
}

}  // namespace

int bench_collectives(const std::vector<std::string>& args) {
  Request request;
  read_only_options(args, bench_options().options, "lockstep bench collectives", request);
  if (request.help) return print_bench_help();
  CollectivesBench& bench = request.bench;
  bench.sizes = parse_sizes(request.sizes);
  if (!request.json_file.empty()) check_output_file(request.json_file);
  hand_over_to_libtorch(bench.backend, args);
  choose_backend(bench.backend, GroupSpec{});  // refuses an unknown name before anything starts
  warn_if_busy();
  if (is_launched()) return run_launched(bench, request.ranks_given, request.json_file);
  print_head(bench);
  Report report(bench, request.json_file);
  return run_collectives_bench(
      bench, [&](const CollectivesResult& result) { report.add(result); },
      [&] { report.finish(); });
}

}  // namespace lockstep::app
