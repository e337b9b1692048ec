#pragma once
// Which classes are taken for which: a table and a picture.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::inline internal {

/// Samples by their true and their predicted class.
struct Confusion {
  int64_t classes = 0;
  std::vector<int64_t> counts;  ///< classes x classes; a row is a true class.

  int64_t at(int64_t truth, int64_t predicted) const {
    return counts[static_cast<size_t>(truth * classes + predicted)];
  }
  int64_t samples() const;
};

/// A line of the predicted classes' names, then a line for each true class: its name, and how many
/// of its samples were taken for each class. RFC 4180; `names`: one for each class.
std::string confusion_csv(const Confusion& confusion, const std::vector<std::string>& names);

/// SVG: a square for each pair of classes, the darker the greater its share of the true class. Up
/// to kMostNamedClasses have their names, and few enough their counts; of very many, some classes
/// share a square.
std::string confusion_svg(const std::string& title, const Confusion& confusion,
                          const std::vector<std::string>& names);
inline constexpr int64_t kMostNamedClasses = 50;

/// Writes STEM.csv and STEM.svg into `folder`; nothing without samples. Classes beyond `names` are
/// named by their numbers. Errors: kIo.
void write_confusion(const std::filesystem::path& folder, const std::string& stem,
                     const std::string& title, const Confusion& confusion,
                     std::vector<std::string> names);

}  // namespace lockstep::inline internal
