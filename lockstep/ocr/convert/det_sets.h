#pragma once
// Which label file of a detection set belongs to which picture, set by set.

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ocr/convert/label_set.h"

namespace lockstep::ocr {

enum class Order {
  kByLabel,    ///< Label files sorted by name; each names its picture.
  kByPicture,  ///< Pictures sorted by the number that ends their name; each has a label file.
};

/// A set of one label file for each picture.
struct LabelSet {
  std::string_view name;
  Order order;
  const char* ending;  ///< Of label files.
  /// A label file's name to its picture's, or, by picture, a picture's to its label file's.
  std::string (*other)(const std::string&);
  std::vector<LabelWord> (*parse)(const std::string&, const std::string&, LabelNotes&);
};

/// CTW1500's training set, where its folder holds no .txt; no name to ask for.
inline constexpr std::string_view kCtwTraining = "ctw1500, training";

/// Null where there is no such set.
const LabelSet* find_label_set(std::string_view name);

}  // namespace lockstep::ocr
