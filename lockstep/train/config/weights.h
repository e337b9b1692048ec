#pragma once
// Where the weights lie that a configuration names by True or by an address: in a folder, into
// which fetch_pretrained() (train/fetch/weights.h) or the user puts them. And which ones a run has
// left.

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/train/config/config.h"

namespace lockstep {

/// MindOCR's address of weights for `pretrained: True`; "" when it has none for this backbone.
std::string known_weights(const BackboneConfig& backbone);

/// $LOCKSTEP_CACHE/weights, else $XDG_CACHE_HOME/lockstep/weights, else ~/.cache/lockstep/weights.
std::filesystem::path weights_folder();

/// The file for `given`: a path is itself; of an address it is its last component in
/// weights_folder(), or with the ending .safetensors or .pth instead, or in ~/.mindspore/models,
/// where MindOCR puts what it downloads. The first that exists; when none does, the first.
std::filesystem::path weights_path(const std::string& given);

/// A `pretrained` of the model whose file is not there.
struct MissingWeights {
  std::string key;
  std::string given;
  bool is_address = false;
};
std::vector<MissingWeights> find_missing(const ModelConfig& model);

/// A line with the key, the place for the file and how to do without. `why`: it cannot be
/// downloaded.
std::string describe(const MissingWeights& missing, const std::string& why);

/// A line for each, for --check: what a run would do about it.
std::vector<std::string> missing_weights(const ModelConfig& model);

/// The best weights that a run left in train.ckpt_save_dir: best.EXT in its own format, in another
/// one (an earlier run's), else the checkpoint `best`. Empty when there is none of them.
std::filesystem::path best_weights(const TrainSection& train);

/// Checks that the file is there. Errors: kNotFound, with the address and the place for it.
std::filesystem::path require_weights(const std::string& given);

}  // namespace lockstep
