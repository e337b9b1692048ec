#pragma once
// Which file a path of a configuration means: one's own, or an installed recipe.

#include <filesystem>
#include <string>

namespace lockstep::inline internal {

struct RecipeFile {
  std::filesystem::path path;
  std::string text;
};

/// The file of find_recipe() with the recipes that `make install` put beside this program. Errors:
/// kNotFound, with the nearest name of the same folder; kIo; kInvalidArgument for one that is too
/// long.
RecipeFile read_recipe(const std::filesystem::path& path);

/// The path, or the file of that name in the folder `recipes` if the path is relative and there is
/// no such file. A leading "configs" of the path stands for that folder, as in the source tree.
std::filesystem::path find_recipe(const std::filesystem::path& path,
                                  const std::filesystem::path& recipes);

}  // namespace lockstep::inline internal
