#pragma once
// A training configuration for any folder of pictures, chosen from what the folder holds.

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/data/pictures/index.h"

namespace lockstep::inline internal {

/// What a folder of pictures holds.
struct FolderFacts {
  std::filesystem::path train;  ///< The folder with a sub-folder for each class.
  std::filesystem::path eval;   ///< The same of other pictures; empty: a part is held out.
  PictureClasses classes;
  int64_t train_pictures = 0;
  int64_t eval_pictures = 0;
  int64_t smallest_class = 0;         ///< Pictures for training, of a class that has any.
  int64_t largest_class = 0;          ///< The same.
  int shorter_side = 0;               ///< Median over some pictures.
  std::vector<std::string> warnings;  ///< Of the pictures for training.
};

/// A tenth of each class, if a folder has no pictures of its own for evaluation.
inline constexpr int64_t kHeldOut = 10;

/// The SplitFolders of FOLDER if it has no others, or has one called "train" and one for
/// evaluation in small letters; else the sub-folders of FOLDER are the classes. Decodes up to 60
/// pictures. Errors: those of index_folder(); kCorrupt if none of them can be decoded.
FolderFacts look_at_folder(const std::filesystem::path& folder);

/// A line about classes of which one has at least three times the pictures of another; or "".
std::string unbalanced_note(const FolderFacts& facts);

/// The settings that depend on the facts.
struct RecipeChoice {
  int side = 224;  ///< Of the network's input: 32, 64, 128 or 224, near the pictures' sides.
  int64_t batch_size = 32;
  int64_t epochs = 30;  ///< Fewer for many pictures.
  double lr = 0.05;
  std::string network;          ///< Of the zoo; empty: ResNet-18 with a stem for the size.
  bool as_transformer = false;  ///< AdamW, as transformers and ConvNeXts are trained.
};
/// `network`: a name of the zoo for model.network, or empty. It is not checked here.
RecipeChoice choose_recipe(const FolderFacts& facts, const std::string& network = "");

/// "ResNet-18", or the network's name.
std::string network_title(const RecipeChoice& choice);

/// The folder of a recipe's results: named after the file, beside it. It is in runs/ if that would
/// be `pictures` or a folder in it, and in runs/ beside `pictures` if the current folder is. The
/// next run would take its checkpoints for classes.
std::filesystem::path results_of(const std::filesystem::path& recipe,
                                 const std::filesystem::path& pictures);

/// The text of a configuration, with its results in `results`.
std::string recipe_yaml(const FolderFacts& facts, const RecipeChoice& choice,
                        const std::filesystem::path& results);

}  // namespace lockstep::inline internal
