#pragma once
// Which pictures a prediction is about, and what its results are called.

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::ocr {

/// `input` itself, or the .jpg, .jpeg and .png files in it and the folders below it (in any case of
/// letters), sorted by path. What stands in the folder `results` below `input` was drawn by an
/// earlier prediction and is left out. Errors: kNotFound (no such path, or no picture in it), kIo.
std::vector<std::filesystem::path> find_pictures(const std::filesystem::path& input,
                                                 const std::filesystem::path& results = {});

/// For each picture the name without its extension, as MindOCR names what it draws; where two would
/// be called the same, the path below `input` with "_" for "/" and "." instead.
std::vector<std::string> result_names(const std::vector<std::filesystem::path>& pictures,
                                      const std::filesystem::path& input);

}  // namespace lockstep::ocr
