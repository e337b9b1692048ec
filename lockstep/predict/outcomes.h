#pragma once
// What each picture gave, from all ranks to rank 0, over the store.

#include <functional>
#include <string>
#include <vector>

#include "lockstep/launch/world.h"

namespace lockstep {

struct Outcome {
  bool good = false;
  std::string text;  ///< The picture's line, or why there is none.
};

/// Picture i is the business of rank i % size. One thread.
class Outcomes {
 public:
  /// Of `pictures` pictures. `arrived` hears of each outcome on rank 0, those of one rank in order.
  Outcomes(const World& world, size_t pictures, std::function<void(const Outcome&)> arrived);

  /// This rank's next picture. On rank 0 it also looks for what has come from the others.
  void add(size_t picture, Outcome outcome);

  /// Rank 0: waits for the rest and gives all in the pictures' order; other ranks: nothing.
  /// Errors: kTimeout naming a rank from which nothing came for `patience`.
  std::vector<Outcome> finish(std::chrono::milliseconds patience = std::chrono::minutes(10));

 private:
  void take(size_t picture, const std::string& value);
  void look();

  const World& world_;
  std::function<void(const Outcome&)> arrived_;
  std::vector<Outcome> all_;  // rank 0
  std::vector<size_t> next_;  // rank 0: of each rank, the first picture that has not come
};

}  // namespace lockstep
