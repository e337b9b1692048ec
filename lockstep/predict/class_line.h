#pragma once
// A line of cls_results.txt: what a picture shows.

#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// "a.png\t[{"label": "cat", "class": 3, "probability": 0.912345}, ...]": the five most probable
/// classes, of equal ones the first; `names` has one for each class. A probability that is no
/// number is null and comes last; bytes of a name that are no UTF-8 are replaced. Without the line
/// feed.
std::string class_line(const std::string& file, std::span<const float> probabilities,
                       const std::vector<std::string>& names);

}  // namespace lockstep
