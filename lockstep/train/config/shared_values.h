#pragma once
// The values of a configuration that must be the same on all ranks of a run.
//
// Ranks train one network together. An option that differs on some ranks changes the results of
// all, or leads to a deadlock. So every key must be the same on all ranks. These alone may differ
// from host to host:
//   - paths of inputs, because hosts may keep their copies in different places: dataset_root,
//     data_dir, label_file, character_dict_path, pretrained, ckpt_load_path, vis_font_path,
//     model.resume. Their contents are compared by other means: the number of samples, and the
//     checkpoint of a resumed run, a teacher's weights; initial weights are those of rank 0 on all
//     ranks;
//   - sizes that suit a host's cores and memory: parallel.threads (but not with
//     parallel.virtual_ranks, whose bits depend on it), loader.num_workers, loader.prefetch_size,
//     loader.max_rowsize, system.device_id;
//   - options of a rank's own log: system.log_level, log_interval, log_interval_seconds, log_style;
//   - the sections `predict`, which is no part of a run, and `common`, which matters only where
//     other sections refer to it.
// train.ckpt_save_dir is compared: all ranks resume from the files that rank 0 writes there.

#include <map>
#include <string>

#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// Text of each value that must be the same, by full key ("train.loader.batch_size",
/// "train.dataset.transform_pipeline[0].Resize.size"). Numbers and flags with the same YAML value
/// have the same text. So do paths that name the same place, compared without access to the disk.
std::map<std::string, std::string> shared_values(const Config& config);

/// "KEY is A on rank 1, B on rank 0 (2 other keys differ)" for the first key that differs; empty if
/// none does. A value missing on one side is "absent".
std::string first_difference(const std::map<std::string, std::string>& a, const std::string& on_a,
                             const std::map<std::string, std::string>& b, const std::string& on_b);

}  // namespace lockstep::inline internal
