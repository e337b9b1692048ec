#pragma once
// The input pictures of a prediction, and the names of its results.

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::ocr {

/// `input` itself, or the .jpg, .jpeg, .png, .bmp and .webp files in it and the folders below it
/// (in upper or lower case), sorted by path. Files and folders whose names begin with a dot do not
/// count. Files in the folder `results` below `input` come from an earlier prediction and are
/// skipped. Errors: kNotFound (no such path, or no picture in it),
/// kIo.
std::vector<std::filesystem::path> find_pictures(const std::filesystem::path& input,
                                                 const std::filesystem::path& results = {});

/// The picture's path below `input`, or its file name if it is `input` itself.
std::string name_below(const std::filesystem::path& picture, const std::filesystem::path& input);

/// For each picture the name without its extension, as in MindOCR. For equal names it is the path
/// below `input` with "_" for "/" and "." instead. All are different: a second one of a name ends
/// in "_2", a third in "_3".
std::vector<std::string> result_names(const std::vector<std::filesystem::path>& pictures,
                                      const std::filesystem::path& input);

}  // namespace lockstep::ocr
