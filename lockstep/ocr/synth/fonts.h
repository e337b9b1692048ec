#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::ocr {

/// A face in a font file.
struct FontFile {
  std::string path;
  int face = 0;
};

/// The scalable fonts with all ASCII letters and digits, of regular or greater weight, sorted by
/// path. They are fontconfig's, or, with `folder`, those in it and below. Errors: kNotFound if
/// there is no font; kInvalidArgument if `folder` is no folder.
std::vector<FontFile> find_fonts(const std::filesystem::path& folder = {});

}  // namespace lockstep::ocr
