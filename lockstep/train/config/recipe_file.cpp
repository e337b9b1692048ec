#include "lockstep/train/config/recipe_file.h"

#include <fmt/format.h>

#include <algorithm>
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

constexpr const char* kEnding = ".yaml";

/// ", did you mean 'NAME'?" for a file of the same folder.
std::string nearest_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::vector<std::string> names;
  for (std::string& name : entry_names(folder)) {
    if (name.ends_with(kEnding)) names.push_back(std::move(name));
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

/// The recipes of a folder, by their paths from there. Errors are left to who opens one.
std::vector<std::string> recipes_below(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  constexpr int kDeepest = 4;
  std::vector<std::string> paths;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied,
                                         error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    if (entry.depth() >= kDeepest) entry.disable_recursion_pending();
    if (entry->path().extension() == kEnding)
      paths.push_back(entry->path().lexically_relative(folder).string());
    entry.increment(error);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::string nearest_recipe(const std::filesystem::path& path,
                           std::span<const std::filesystem::path> folders) {
  std::string of_same_folder = nearest_file(path);
  if (!of_same_folder.empty() || !may_be_recipe(path)) return of_same_folder;
  std::string name = path.filename().replace_extension(kEnding).string();
  for (const auto& folder : folders) {
    const auto recipes = recipes_below(folder);
    std::vector<std::string> names;
    for (const auto& recipe : recipes) {
      names.push_back(std::filesystem::path(recipe).filename().string());
    }
    const auto found = std::find(names.begin(), names.end(), nearest_name(name, names));
    if (found == names.end()) continue;
    const auto& recipe = recipes[static_cast<size_t>(found - names.begin())];
    return fmt::format(", did you mean '{}'?",
                       folder.is_relative() ? (folder / recipe).string() : recipe);
  }
  return "";
}

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
  auto folders = recipe_folders();
  const auto path = find_recipe(named, folders);
  try {
    return {path, read_file(path, YamlLimits().text_bytes)};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    folders.insert(folders.begin(), "configs");  // of the source tree
    throw Error(ErrorCode::kNotFound, error.what() + nearest_recipe(path, folders));
  }
}

}  // namespace lockstep::inline internal
