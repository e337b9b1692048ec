#pragma once
// The places of weights that a configuration names by True or by an address: a folder filled by
// fetch_pretrained() (train/fetch/weights.h) or by the user. Also the weights that a run left.

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// MindOCR's address of weights for `pretrained: True`; "" if it has none for this backbone.
std::string known_weights(const BackboneConfig& backbone);

/// $LOCKSTEP_CACHE/weights, else $XDG_CACHE_HOME/lockstep/weights, else ~/.cache/lockstep/weights.
std::filesystem::path weights_folder();

/// The file for `given`. A path is itself. For an address it is its last component in
/// weights_folder(), also with the ending .safetensors or .pth, or in ~/.mindspore/models,
/// MindOCR's folder of downloads. Returns the first that exists, else the first candidate.
std::filesystem::path weights_path(const std::string& given);

/// A `pretrained` whose file is missing.
struct MissingWeights {
  std::string key;
  std::string given;
  bool is_address = false;
  bool is_needed = false;  ///< A teacher's: there is no run without it.
};
/// Those of the model, and of a loss's teacher.
std::vector<MissingWeights> find_missing(const Config& config);

/// A line with the key, the place for the file and how to do without. `why`: the reason that it
/// cannot be downloaded.
std::string describe(const MissingWeights& missing, const std::string& why);

/// For --check: one line for each missing file, with the action of a run.
std::vector<std::string> missing_weights(const Config& config);

/// The best weights that a run left in train.ckpt_save_dir: best.EXT in its own format, in another
/// one (an earlier run's), else the checkpoint `best`. Empty if there is none.
std::filesystem::path best_weights(const TrainSection& train);

/// Refuses a DIR/classes.txt of other lines that is not of a run: there is no args.yaml beside it.
/// It may be a user's, and `predict` would take its lines for the classes. Errors: kInvalidArgument
/// naming both.
void check_class_names(const std::filesystem::path& dir, const std::vector<std::string>& names);
/// Writes DIR/classes.txt: the names of a run's classes, one a line. Nothing if there are none, or
/// one has a line's end in it. A file of the same lines stays, whether they end as on Windows or
/// not. One of other lines is renamed to classes.txt.1 (.2, ...), since a user may have changed
/// them; the new path is returned. Errors: kIo.
std::filesystem::path write_class_names(const std::filesystem::path& dir,
                                        const std::vector<std::string>& names);

/// Why write_class_names() writes nothing, though there are names; else empty.
std::string unwritten_names_note(const std::filesystem::path& dir,
                                 const std::vector<std::string>& names);

/// The names that write_class_names() left beside `weights`: a file or checkpoint in the folder of
/// results, or a file of such a checkpoint. Empty if there are none. Errors: kIo, kCorrupt.
std::vector<std::string> trained_class_names(const std::filesystem::path& weights);

/// Checks that the file is there. Errors: kNotFound, with the address and the place for it.
std::filesystem::path require_weights(const std::string& given);

}  // namespace lockstep::inline internal
