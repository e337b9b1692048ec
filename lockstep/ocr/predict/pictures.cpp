#include "lockstep/ocr/predict/pictures.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::ocr {
namespace {

namespace fs = std::filesystem;

bool is_picture(const fs::path& file) {
  const std::string extension = ascii_lower(file.extension().string());
  constexpr std::array kKnown = {".jpg", ".jpeg", ".png", ".bmp", ".webp"};
  return std::find(kKnown.begin(), kKnown.end(), extension) != kKnown.end();
}

/// Whether a link leads to a folder that contains it: following it would never end.
bool leads_back(const fs::directory_entry& entry) {
  if (!entry.is_symlink()) return false;
  const fs::path target = fs::canonical(entry.path());
  const fs::path place = fs::canonical(entry.path().parent_path());
  return std::mismatch(target.begin(), target.end(), place.begin(), place.end()).first ==
         target.end();
}

std::vector<fs::path> pictures_below(const fs::path& folder, const fs::path& results) {
  std::vector<fs::path> found;
  const auto skips = [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    return leads_back(entry) ||
           (!results.empty() && fs::equivalent(entry.path(), results, ignored));
  };
  try {
    constexpr auto kFollow = fs::directory_options::follow_directory_symlink;
    const fs::recursive_directory_iterator end;
    for (fs::recursive_directory_iterator entry(folder, kFollow); entry != end; ++entry) {
      const bool hidden = entry->path().filename().native().starts_with('.');
      if (entry->is_directory()) {
        if (hidden || skips(*entry)) entry.disable_recursion_pending();
      } else if (!hidden && entry->is_regular_file() && is_picture(entry->path())) {
        found.push_back(entry->path());
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCode::kIo, std::string("input: ") + error.what());
  }
  std::sort(found.begin(), found.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return found;
}

std::string whole_name(const fs::path& picture, const fs::path& input) {
  std::string name = picture.lexically_relative(input).string();
  for (char& c : name) {
    if (c == '/' || c == '.') c = '_';
  }
  return name;
}

}  // namespace

std::vector<fs::path> find_pictures(const fs::path& input, const fs::path& results) {
  std::error_code ignored;
  if (!fs::exists(input, ignored)) {
    throw Error(ErrorCode::kNotFound, "input " + input.string() + " does not exist");
  }
  if (!fs::is_directory(input, ignored)) return {input};
  auto found = pictures_below(input, results);
  if (found.empty()) {
    throw Error(ErrorCode::kNotFound,
                "input " + input.string() +
                    ": no .jpg, .jpeg, .png, .bmp or .webp in this folder or below it");
  }
  return found;
}

std::string name_below(const fs::path& picture, const fs::path& input) {
  if (picture == input) return picture.filename().string();
  return picture.lexically_relative(input).string();
}

std::vector<std::string> result_names(const std::vector<fs::path>& pictures,
                                      const fs::path& input) {
  std::map<std::string, int> uses;
  for (const fs::path& one : pictures) ++uses[one.stem().string()];
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const fs::path& one : pictures) {
    const std::string stem = one.stem().string();
    const std::string name = uses[stem] == 1 ? stem : whole_name(one, input);
    std::string free = name;
    for (int number = 2; !taken.insert(free).second; ++number) {
      free = name + "_" + std::to_string(number);
    }
    names.push_back(std::move(free));
  }
  return names;
}

}  // namespace lockstep::ocr
