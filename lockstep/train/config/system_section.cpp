#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "lockstep/train/config/sections.h"

namespace lockstep::inline internal {
namespace {

void read_save_policy(ConfigSection& section, SystemConfig& config) {
  const bool keeps_all = section.present("ckpt_save_policy") && !section.has("ckpt_save_policy");
  if (keeps_all) {
    // null means "keep all"; only an absent key means the default.
    section.any("ckpt_save_policy");
    config.ckpt_save_policy = "";
  } else {
    section.choose("ckpt_save_policy", config.ckpt_save_policy, {"top_k", "latest_k"},
                   "which checkpoints stay, the best or the latest; null keeps all");
  }
}

void read_amp_levels(ConfigSection& section, SystemConfig& config) {
  std::vector<Named<AmpLevel>> levels;
  for (const auto& name : amp_level_names())
    levels.push_back({name.c_str(), parse_amp_level(name)});
  section.choose("amp_level", config.amp_level, levels,
                 "mixed precision of training, and of evaluation within it");
  section.choose("amp_level_infer", config.amp_level_infer, levels,
                 "mixed precision of `eval` and `predict`");
}

void read_log(ConfigSection& section, SystemConfig& config) {
  section.choose(
      "log_level", config.log_level,
      {"logging.DEBUG", "logging.INFO", "logging.WARNING", "logging.ERROR", "logging.CRITICAL"},
      "lines below this level are left out");
  section.choose("log_style", config.log_style,
                 {{"mindocr", LogStyle::kMindocr}, {"mindspore", LogStyle::kMindspore}},
                 "*ours*: how lines look");
  section.read("log_interval", config.log_interval, {1, kMaxCount},
               "micro-steps from one line to the next");
  section.read("log_interval_seconds", config.log_interval_seconds, {0, 1 << 20},
               "*ours*: a line at least so often, the first after 5 s at the latest; 0: by "
               "`log_interval` alone");
  section.read("tensorboard", config.tensorboard,
               "*ours*: True: the folder `tensorboard` of the results gets what `metrics.jsonl` "
               "has");
}

}  // namespace

void ignore(ConfigSection& section, const std::string& key) {
  section.any(key);
}

void accept(ConfigSection& section, const std::string& key, const std::string& only) {
  std::string value = only;
  section.choose(key, value, {only}, "of no effect, only this one is there");
}

void read_name(ConfigSection& section, const std::string& key, std::string& value,
               const std::vector<std::string>& built_in, const std::vector<std::string>& others,
               const std::string& about) {
  const auto listed = fmt::format("{}", fmt::join(built_in, ", "));
  if (!section.has(key)) section.refuse_misspelt(key);  // before errors about the default
  if (value.empty()) {
    if (!section.has(key)) section.fail(key, "is missing: one of " + listed);
    section.require(key, "is missing");
  }
  std::string given = value;
  section.read(key, given, "");
  const auto is_in = [&given](const auto& names) {
    return std::find(names.begin(), names.end(), given) != names.end();
  };
  if (is_in(others) && !is_in(built_in)) {
    section.fail(key,
                 fmt::format("cannot be '{}', which is not built in: one of {}", given, listed));
  }
  section.choose(key, value, built_in, about);
}

SystemConfig read_system(ConfigSection section) {
  SystemConfig config;
  int64_t mode = 0;
  section.read("mode", mode, {0, 1}, "of no effect: MindSpore's graph or eager mode");
  section.read("distribute", config.distribute,
               "False under a launcher of several ranks is an error");
  section.read("device_id", config.device_id, {0, 1 << 7},
               "CUDA device of a program that is alone; see [devices](#devices)");
  read_amp_levels(section, config);
  section.read("drop_overflow_update", config.drop_overflow_update,
               "True: a step whose loss or gradients are no finite numbers is left out; with a "
               "dynamic `loss_scaler` it is in any case");
  bool refine = true;
  section.read("refine_batch_size", refine, "of no effect: evaluation is exact at any batch size");
  section.read("seed", config.seed, {0, std::numeric_limits<int64_t>::max()},
               "of weights, order and augmentation; the number of ranks does not enter");
  read_log(section, config);
  section.read("val_while_train", config.val_while_train, "evaluates after epochs");
  section.read("val_start_epoch", config.val_start_epoch, {1, kMaxCount},
               "the first epoch that is evaluated");
  section.read("val_interval", config.val_interval, {1, kMaxCount},
               "epochs from one evaluation to the next");
  read_save_policy(section, config);
  section.read("ckpt_max_keep", config.ckpt_max_keep, {1, 1 << 20},
               "checkpoints that `ckpt_save_policy` keeps");
  section.finish();
  return config;
}

namespace {

/// Refuses options whose bits depend on the number of ranks, or that virtual ranks do not support.
void refuse_with_virtual_ranks(ConfigSection& section, const ParallelConfig& config) {
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

/// The averages of gradients, buffers and statistics.
void read_averaging(ConfigSection& section, ParallelConfig& config) {
  section.read("bucket_cap_mb", config.bucket_cap_mb, {0.001, 1 << 16},
               "MiB of gradients that travel together");
  section.read("broadcast_buffers", config.broadcast_buffers,
               "buffers, such as running statistics, become rank 0's before each step");
  section.read("find_unused_parameters", config.find_unused_parameters,
               "True: parameters may be left out of a step's loss");
  section.read("static_graph", config.static_graph,
               "True: the same parameters get gradients in every step, so that unused ones cost "
               "nothing; not together with `find_unused_parameters`");
  if (config.find_unused_parameters && config.static_graph) {
    section.fail("static_graph", "cannot be on together with parallel.find_unused_parameters");
  }
  section.choose("comm_hook", config.comm_hook,
                 {"none", "auto", "fp16", "bf16", "int8", "powersgd"},
                 "how gradients travel: fp16 or bf16 (half the bytes), int8 (a quarter), powersgd "
                 "(products of thin matrices, after 1000 steps); auto: none or bf16, whichever a "
                 "trial in the first steps finds faster. int8 and powersgd not with a dynamic "
                 "loss_scaler nor `system.drop_overflow_update`");
  section.read("sync_bn", config.sync_bn,
               "True: batch norm takes its statistics from the batches of all ranks");
}

}  // namespace

ParallelConfig read_parallel(ConfigSection section) {
  ParallelConfig config;
  section.refuse_wrong_name("shards", "virtual_ranks");
  section.read(
      "virtual_ranks", config.virtual_ranks, {0, 1 << 20},
      "parts of the global batch, each of `loader.batch_size` samples; 0: one a rank. With "
      "V > 0 the bits are the same on every number of ranks from 1 to V. Where that does "
      "not divide V, some ranks have one part more than others, and the others wait for "
      "them");
  section.read("threads", config.threads, {0, 1 << 16},
               "of a rank's computation; 0: the rank's part of the cores, but 1 with "
               "`virtual_ranks`, because bits depend on the number of threads");
  section.choose("device", config.device, {"auto", "cpu", "cuda"},
                 "where a rank computes: cpu; cuda, its own device there ([devices](#devices)); "
                 "auto: cuda where libtorch sees a device, but cpu with `virtual_ranks`");
  section.read(
      "backend", config.backend,
      "auto, native, mpi, c10d:gloo, c10d:nccl, hccl; [their "
      "operations](collectives.md#back-ends). auto is native (tensors on CUDA: c10d:nccl, on "
      "Ascend's NPUs: hccl), but see `order`");
  section.choose("order", config.any_order, {{"fixed", false}, {"any", true}},
                 "of sums; any: auto may take the back end that a measurement at the start finds "
                 "fastest between hosts");
  read_averaging(section, config);
  section.choose(
      "scale_rate", config.scale_rate,
      {{"none", RateScale::kNone}, {"linear", RateScale::kLinear}, {"sqrt", RateScale::kSqrt}},
      "of learning rates with the global batch: times its share of `reference_batch`, "
      "or times the square root of that");
  section.read("reference_batch", config.reference_batch, {0, 1 << 30},
               "the global batch for which `scheduler.lr` is meant; needed with `scale_rate`");
  if (config.scale_rate != RateScale::kNone && config.reference_batch == 0) {
    section.fail("reference_batch",
                 "must be at least 1 with scale_rate: the global batch for "
                 "which scheduler.lr is meant, e.g. 256");
  }
  section.read("global_batch", config.global_batch, {0, 1 << 30},
               "samples of an optimizer step over all ranks, whatever their number: each takes an "
               "equal share, in as many batches of up to `train.loader.batch_size` as it needs; "
               "not together with `train.gradient_accumulation_steps`. 0: a batch of that size "
               "for each rank");
  section.read("timeout_s", config.timeout_s, {1, 1 << 24}, "of every collective, in seconds");
  section.read("measure_wait", config.measure_wait,
               "True: `metrics.jsonl` also has `slowest_wait_ms`, how far rank 0 was ahead of "
               "the slowest rank in a backward pass; costs one reduction of 8 bytes");
  refuse_with_virtual_ranks(section, config);
  section.finish();
  return config;
}

}  // namespace lockstep::inline internal
