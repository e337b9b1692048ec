#pragma once
// What of a configuration must be the same on all ranks of a run.
//
// Ranks train one network together: an option that only some of them have changes what all of them
// get, or makes them wait for each other in vain. So every key must be the same on all ranks, but
// for these, which may rightly differ from host to host:
//   - paths of what is read, because hosts may keep their copies in other places: dataset_root,
//     data_dir, label_file, character_dict_path, pretrained, ckpt_load_path, vis_font_path,
//     model.resume. What is found there is compared by other means: the number of samples, the
//     checkpoint that a run goes on from; weights to start from are rank 0's on all ranks;
//   - what fits a host's cores and memory: parallel.threads (but not with parallel.virtual_ranks,
//   whose
//     bits depend on it), loader.num_workers, loader.prefetch_size, loader.max_rowsize,
//     system.device_id;
//   - what a rank's own log says: system.log_level, log_interval, log_interval_seconds, log_style;
//   - the sections `predict`, which is no part of a run, and `common`, of which only counts what
//     other sections take from it.
// train.ckpt_save_dir is compared: rank 0 writes there what all ranks go on from.

#include <map>
#include <string>

#include "lockstep/train/config/config.h"

namespace lockstep {

/// Text of each value that must be the same, by full key ("train.loader.batch_size",
/// "train.dataset.transform_pipeline[0].Resize.size"). Numbers and flags that YAML reads as the
/// same value have the same text, paths that name the same place without a look at the disk, too.
std::map<std::string, std::string> shared_values(const Config& config);

/// "KEY is A on rank 1, B on rank 0 (2 other keys differ)" for the first key that differs;
/// empty when none does. A value that one side lacks is "absent".
std::string first_difference(const std::map<std::string, std::string>& a, const std::string& on_a,
                             const std::map<std::string, std::string>& b, const std::string& on_b);

}  // namespace lockstep
