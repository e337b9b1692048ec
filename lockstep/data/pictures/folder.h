#pragma once
// A folder with a sub-folder of pictures for each class: ImageNet's layout.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/pictures/index.h"

namespace lockstep::inline internal {

struct FolderOptions {
  /// 0: all pictures belong to either split. Else one of so many pictures of each class is for
  /// evaluation: those whose names have the smallest hashes, and at least one of two or more.
  int64_t held_out = 0;
  Split split = Split::kAll;
  double ratio = 1;  ///< The leading part of each class; at least one picture.
  /// Where the folders' contents are kept from run to run, for 10,000 pictures or more; empty:
  /// nowhere. See FolderListing. Names that cannot be kept there are in memory, or in a file of
  /// this process beside it: see PictureIndex::limit_memory().
  std::filesystem::path listing{};
};

/// The sub-folders of a data set that are named as its parts for training and for evaluation, in
/// any case: "train" or "training"; "val", "valid", "validation", "test", "testing", "eval".
struct SplitFolders {
  std::string train;  ///< Empty: there is none.
  std::string eval;   ///< The first in this order; empty: there is none.
  size_t others = 0;  ///< Not for evaluation, and not `train`.

  static SplitFolders among(const std::vector<std::string>& folders);
};

/// The names of the sub-folders, sorted by their bytes, without is_ignored_name() ones. Errors:
/// kNotFound, which names the folder (it does not exist, or has no sub-folder); kIo.
PictureClasses folder_classes(const std::filesystem::path& folder);

/// The pictures below `folder`, also in nested folders and behind links; a link to a folder above
/// itself is left out. They are sorted by class, then by folder, then by name, each by its bytes,
/// as torchvision's ImageFolder sorts them. `classes`: those of training, for evaluation.
///
/// A class without a picture is a warning. So is a single class of training, and classes that
/// SplitFolders takes for parts of a data set. Folders are read by several threads: file servers
/// answer side by side. Errors: those of folder_classes(); kNotFound (no picture at all);
/// kInvalidArgument naming a sub-folder that `classes` lacks; kIo.
PictureIndex index_folder(const std::filesystem::path& folder, const FolderOptions& options = {},
                          const std::optional<PictureClasses>& classes = std::nullopt);

}  // namespace lockstep::inline internal
