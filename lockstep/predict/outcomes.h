#pragma once
// The result of each picture, from all ranks to rank 0, over the store.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lockstep/world.h"

namespace lockstep::inline internal {

struct Outcome {
  bool good = false;
  std::string text;                   ///< The picture's line, or the reason why there is none.
  size_t usable_regions = 0;          ///< Regions of it whose text was read.
  std::vector<std::string> faults{};  ///< A line for each region that is unusable.
};

/// Rank i % size handles picture i. One thread.
class Outcomes {
 public:
  /// For `pictures` pictures. Rank 0 calls `found` once for each, in the pictures' order, as soon
  /// as it and all before it are known.
  Outcomes(const World& world, size_t pictures, std::function<void(const Outcome&)> found);

  /// Adds one of this rank's pictures, in any order. Rank 0 also collects results of the others.
  void add(size_t picture, Outcome outcome);

  /// Rank 0 waits for the rest; other ranks return at once.
  /// Errors: kTimeout naming a rank that sent nothing for `patience`.
  void finish(std::chrono::milliseconds patience = std::chrono::minutes(10));

 private:
  void take(size_t picture, const std::string& value);
  void keep(size_t picture, Outcome outcome);
  void look();

  const World& world_;
  const size_t pictures_;
  std::function<void(const Outcome&)> found_;
  std::map<size_t, Outcome> early_;  // rank 0: known, but not all before them
  size_t handed_on_ = 0;             // rank 0: pictures below are reported
  std::vector<size_t> next_;         // rank 0: for each rank, its first missing picture
};

// Lines of cls_results.txt and cls_results.csv: the classes of a picture. Without the line feed.

/// "a.png\t[{"label": "cat", "class": 3, "probability": 0.912345}, ...]": the `most` most probable
/// classes, of equal ones the first; `names` has one for each class. A probability that is not a
/// number is null and comes last. Invalid UTF-8 in a name is replaced.
std::string class_line(const std::string& file, std::span<const float> probabilities,
                       const std::vector<std::string>& names, size_t most = 5);

/// Whether a probability of such a line is not a number, as all are if weights are not.
bool has_no_number(const std::string& class_line);

/// "path,class,score,class_2,score_2,...", for `most` classes a picture.
std::string class_table_head(size_t most);
/// "sub/a.png,cat,0.912345,dog,0.061002,...": a class_line() as a row of that table, RFC 4180. A
/// probability that is not a number is "nan".
std::string class_table_row(const std::string& path, const std::string& class_line);

}  // namespace lockstep::inline internal
