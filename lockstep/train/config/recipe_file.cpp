#include "lockstep/train/config/recipe_file.h"

#include <system_error>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/proc.h"
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
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().filename().string());
  }
  return did_you_mean(path.filename().string(), names);
}

/// Where `make install` puts configs/, seen from this program.
std::filesystem::path installed_recipes() {
  const std::filesystem::path programs = program_folder();
  return programs.empty() ? programs : programs.parent_path() / "share/lockstep/configs";
}

/// Where a relative path would be among the installed recipes.
std::filesystem::path among_recipes(const std::filesystem::path& path,
                                    const std::filesystem::path& recipes) {
  const auto normal = path.lexically_normal();
  return recipes / (*normal.begin() == "configs" ? normal.lexically_relative("configs") : normal);
}

}  // namespace

std::filesystem::path find_recipe(const std::filesystem::path& path,
                                  const std::filesystem::path& recipes) {
  std::error_code ignored;
  if (path.empty() || path.is_absolute() || recipes.empty()) return path;
  if (std::filesystem::exists(path, ignored)) return path;
  auto installed = among_recipes(path, recipes);
  return std::filesystem::is_regular_file(installed, ignored) ? installed : path;
}

RecipeFile read_recipe(const std::filesystem::path& named) {
  const auto recipes = installed_recipes();
  const auto path = find_recipe(named, recipes);
  try {
    return {path, read_file(path, YamlLimits().text_bytes)};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    std::string nearest = nearest_file(path);
    if (nearest.empty() && path.is_relative() && !path.empty()) {
      nearest = nearest_file(among_recipes(path, recipes));
    }
    throw Error(ErrorCode::kNotFound, error.what() + nearest);
  }
}

}  // namespace lockstep::inline internal
