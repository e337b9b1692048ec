#include "lockstep/train/config/recipe_file.h"

#include <system_error>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/installation.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/train/config/yaml_reader.h"

namespace lockstep::inline internal {
namespace {

/// ", did you mean 'NAME'?" for a file of the same folder.
std::string nearest_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::vector<std::string> names;
  for (std::string& name : entry_names(folder)) {
    if (name.ends_with(".yaml")) names.push_back(std::move(name));
  }
  return did_you_mean(path.filename().string(), names);
}

std::vector<std::filesystem::path> recipe_folders() {
  std::vector<std::filesystem::path> folders;
  for (const auto& programs : installed_program_folders()) {
    folders.push_back(programs.parent_path() / "share/lockstep/configs");
  }
  return folders;
}

/// A name within such a folder.
bool may_be_recipe(const std::filesystem::path& path) {
  return !path.empty() && path.is_relative() && *path.lexically_normal().begin() != "..";
}

/// Where a relative path would be among the recipes of a folder.
std::filesystem::path among_recipes(const std::filesystem::path& path,
                                    const std::filesystem::path& folder) {
  const auto normal = path.lexically_normal();
  return folder / (*normal.begin() == "configs" ? normal.lexically_relative("configs") : normal);
}

std::string nearest_recipe(const std::filesystem::path& path,
                           std::span<const std::filesystem::path> folders) {
  std::string nearest = nearest_file(path);
  if (!may_be_recipe(path)) return nearest;
  for (const auto& folder : folders) {
    if (nearest.empty()) nearest = nearest_file(among_recipes(path, folder));
  }
  return nearest;
}

}  // namespace

std::filesystem::path find_recipe(const std::filesystem::path& path,
                                  std::span<const std::filesystem::path> folders) {
  std::error_code ignored;
  const auto own = std::filesystem::symlink_status(path, ignored).type();
  if (!may_be_recipe(path) || own != std::filesystem::file_type::not_found) return path;
  for (const auto& folder : folders) {
    auto installed = among_recipes(path, folder);
    if (std::filesystem::is_regular_file(installed, ignored)) return installed;
  }
  return path;
}

RecipeFile read_recipe(const std::filesystem::path& named) {
  const auto folders = recipe_folders();
  const auto path = find_recipe(named, folders);
  try {
    return {path, read_file(path, YamlLimits().text_bytes)};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kNotFound, error.what() + nearest_recipe(path, folders));
  }
}

}  // namespace lockstep::inline internal
