#pragma once
// Which file a path of a configuration means: one's own, or an installed recipe.

#include <filesystem>
#include <span>
#include <string>

namespace lockstep::inline internal {

struct RecipeFile {
  std::filesystem::path path;
  std::string text;
};

/// The file of find_recipe() with the recipes that `make install` put beside this program or the
/// `lockstep` in PATH. Errors: kNotFound, with nearest_recipe(); kIo;
/// kInvalidArgument for one that is too long.
RecipeFile read_recipe(const std::filesystem::path& path);

/// The path. If it is relative and there is no such file: the file of that name in the first of the
/// folders that has one. A leading "configs" stands for such a folder, as in the source tree.
std::filesystem::path find_recipe(const std::filesystem::path& path,
                                  std::span<const std::filesystem::path> folders);

/// ", did you mean 'cls/resnet/resnet50_cifar10.yaml'?" for a path without a file. The nearest name
/// in its folder comes first. Then come those of all recipes in `folders`, at any depth; the ending
/// may be missing. "": none is near.
std::string nearest_recipe(const std::filesystem::path& path,
                           std::span<const std::filesystem::path> folders);

}  // namespace lockstep::inline internal
