#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "lockstep/train/config/sections.h"

namespace lockstep {
namespace {

std::string read_save_policy(Section& section) {
  // null means "keep all"; only an absent key means the default.
  if (section.present("ckpt_save_policy") && !section.has("ckpt_save_policy")) {
    section.any("ckpt_save_policy");
    return "";
  }
  return section.choice("ckpt_save_policy", "top_k", {"top_k", "latest_k"});
}

}  // namespace

void ignore(Section& section, const std::string& key) {
  section.any(key);
}

std::string read_name(Section& section, const std::string& key, const std::string& fallback,
                      const std::vector<std::string>& built_in,
                      const std::vector<std::string>& others) {
  const auto listed = fmt::format("{}", fmt::join(built_in, ", "));
  if (!section.has(key)) section.refuse_misspelt(key);  // or the default's errors came first
  if (fallback.empty() && !section.has(key)) section.fail(key, "is missing: one of " + listed);
  const std::string name = section.text(key, fallback);
  if (std::find(others.begin(), others.end(), name) != others.end()) {
    section.fail(key,
                 fmt::format("cannot be '{}', which is not built in: one of {}", name, listed));
  }
  return section.choice(key, fallback, built_in);
}

SystemConfig read_system(Section section) {
  SystemConfig config;
  section.whole("mode", 0, 0, 1);
  if (section.has("distribute")) config.distribute = section.flag("distribute", false);
  section.any("distribute");
  config.device_id = section.whole("device_id", 0, 0, 1 << 7);
  config.amp_level = parse_amp_level(section.choice("amp_level", "O0", amp_level_names()));
  config.amp_level_infer =
      parse_amp_level(section.choice("amp_level_infer", "O0", amp_level_names()));
  config.drop_overflow_update = section.flag("drop_overflow_update", false);
  section.flag("refine_batch_size", true);
  config.seed = section.whole("seed", 42, 0, std::numeric_limits<int64_t>::max());
  config.log_level = section.choice(
      "log_level", "logging.INFO",
      {"logging.DEBUG", "logging.INFO", "logging.WARNING", "logging.ERROR", "logging.CRITICAL"});
  const auto style = section.choice("log_style", "mindocr", {"mindocr", "mindspore"});
  config.log_style = style == "mindocr" ? LogStyle::kMindocr : LogStyle::kMindspore;
  config.log_interval = section.whole("log_interval", 100, 1, kMaxCount);
  config.log_interval_seconds = section.whole("log_interval_seconds", 30, 0, 1 << 20);
  config.val_while_train = section.flag("val_while_train", false);
  config.val_start_epoch = section.whole("val_start_epoch", 1, 1, kMaxCount);
  config.val_interval = section.whole("val_interval", 1, 1, kMaxCount);
  config.ckpt_save_policy = read_save_policy(section);
  config.ckpt_max_keep = section.whole("ckpt_max_keep", 10, 1, 1 << 20);
  section.finish();
  return config;
}

namespace {

/// What would make the bits depend on the number of ranks again, or has no meaning with virtual
/// ranks.
void refuse_with_virtual_ranks(Section& section, const ParallelConfig& config) {
  if (config.virtual_ranks == 0) return;
  if (!config.broadcast_buffers) {
    section.fail("broadcast_buffers",
                 "cannot be off together with parallel.virtual_ranks, which average buffers");
  }
  const auto refuse = [&](const char* key, bool on) {
    if (on) section.fail(key, "cannot be on together with parallel.virtual_ranks");
  };
  refuse("find_unused_parameters", config.find_unused_parameters);
  refuse("static_graph", config.static_graph);
  refuse("comm_hook", config.comm_hook != "none");
  refuse("sync_bn", config.sync_bn);
  if (config.device == "cuda") {
    section.fail("device",
                 "cannot be cuda together with parallel.virtual_ranks, whose bits are the CPU's");
  }
  if (config.any_order) section.fail("order", "must be fixed together with parallel.virtual_ranks");
}

}  // namespace

ParallelConfig read_parallel(Section section) {
  ParallelConfig config;
  section.refuse_old_name("shards", "virtual_ranks");
  config.virtual_ranks = section.whole("virtual_ranks", 0, 0, 1 << 20);
  config.threads = section.whole("threads", 0, 0, 1 << 16);
  config.device = section.choice("device", "auto", {"auto", "cpu", "cuda"});
  config.backend = section.text("backend", "auto");
  config.any_order = section.choice("order", "fixed", {"fixed", "any"}) == "any";
  config.bucket_cap_mb = section.number("bucket_cap_mb", 25, 0.001, 1 << 16);
  config.broadcast_buffers = section.flag("broadcast_buffers", true);
  config.find_unused_parameters = section.flag("find_unused_parameters", false);
  config.static_graph = section.flag("static_graph", false);
  if (config.find_unused_parameters && config.static_graph) {
    section.fail("static_graph", "cannot be on together with parallel.find_unused_parameters");
  }
  config.comm_hook =
      section.choice("comm_hook", "none", {"none", "auto", "fp16", "bf16", "int8", "powersgd"});
  config.sync_bn = section.flag("sync_bn", false);
  config.timeout_s = section.whole("timeout_s", 300, 1, 1 << 24);
  config.measure_wait = section.flag("measure_wait", false);
  refuse_with_virtual_ranks(section, config);
  section.finish();
  return config;
}

}  // namespace lockstep
