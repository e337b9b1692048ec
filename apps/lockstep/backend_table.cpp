#include "apps/lockstep/backend_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lockstep/base/options.h"

namespace lockstep::app {
namespace {

struct BackendsRequest {
  bool json = false, help = false;
};

OptionGroup<BackendsRequest> backends_options() {
  return {"",
          {{"json", 0, OptionKind::kFlag, "", "for programs", set_flag<&BackendsRequest::json>},
           help_option<BackendsRequest>()}};
}

HelpPage backends_help() {
  return {{{"lockstep doctor backends [--json]", ""}},
          "Lists the back ends that --backend and GroupOptions::backend take: whether this "
          "installation has them, whether a process started as this one can use them, and why not.",
          {help_group(backends_options())},
          ""};
}

std::string as_json(const std::vector<BackendReport>& reports) {
  auto list = nlohmann::json::array();
  for (const auto& report : reports) {
    list.push_back({{"name", report.name},
                    {"summary", report.summary},
                    {"built_in", report.built_in},
                    {"usable", report.usable},
                    {"why_not", report.why_not}});
  }
  return list.dump(2) + "\n";
}

std::string as_table(const std::vector<BackendReport>& reports) {
  size_t width = 8;
  for (const auto& report : reports) width = std::max(width, report.name.size());
  std::string text =
      fmt::format("{:<{}}   built in   runs here   what, or why not\n", "back end", width);
  const auto word = [](bool holds) { return holds ? "yes" : "no"; };
  for (const auto& report : reports) {
    text +=
        fmt::format("{:<{}}   {:<8}   {:<9}   {}\n", report.name, width, word(report.built_in),
                    word(report.usable), report.why_not.empty() ? report.summary : report.why_not);
  }
  return text;
}

}  // namespace

int print_backends(const std::vector<BackendReport>& reports,
                   const std::vector<std::string>& args) {
  BackendsRequest request;
  const auto options = backends_options().options;
  read_only_options(args, options, "lockstep doctor backends", request);
  if (request.help) return print_help(backends_help());
  std::fputs((request.json ? as_json(reports) : as_table(reports)).c_str(), stdout);
  return 0;
}

}  // namespace lockstep::app
