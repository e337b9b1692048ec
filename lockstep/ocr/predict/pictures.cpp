#include "lockstep/ocr/predict/pictures.h"

#include <algorithm>
#include <array>
#include <map>

#include "lockstep/base/error.h"

namespace lockstep::ocr {
namespace {

namespace fs = std::filesystem;

bool is_picture(const fs::path& file) {
  std::string extension = file.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(c < 0x80 ? std::tolower(c) : c); });
  constexpr std::array kKnown = {".jpg", ".jpeg", ".png"};
  return std::find(kKnown.begin(), kKnown.end(), extension) != kKnown.end();
}

std::vector<fs::path> pictures_below(const fs::path& folder) {
  std::vector<fs::path> found;
  try {
    for (const auto& entry : fs::recursive_directory_iterator(
             folder, fs::directory_options::follow_directory_symlink)) {
      if (entry.is_regular_file() && is_picture(entry.path())) found.push_back(entry.path());
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

std::vector<fs::path> find_pictures(const fs::path& input) {
  std::error_code ignored;
  if (!fs::exists(input, ignored)) {
    throw Error(ErrorCode::kNotFound, "input " + input.string() + " does not exist");
  }
  if (!fs::is_directory(input, ignored)) return {input};
  auto found = pictures_below(input);
  if (found.empty()) {
    throw Error(ErrorCode::kNotFound,
                "input " + input.string() + ": no .jpg, .jpeg or .png in this folder or below it");
  }
  return found;
}

std::vector<std::string> result_names(const std::vector<fs::path>& pictures,
                                      const fs::path& input) {
  std::map<std::string, int> uses;
  for (const fs::path& one : pictures) ++uses[one.stem().string()];
  std::vector<std::string> names;
  for (const fs::path& one : pictures) {
    const std::string stem = one.stem().string();
    names.push_back(uses[stem] == 1 ? stem : whole_name(one, input));
  }
  return names;
}

}  // namespace lockstep::ocr
