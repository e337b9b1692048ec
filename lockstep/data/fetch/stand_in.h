#pragma once
// Pictures to train on where the real ones cannot be had.

#include <cstdint>
#include <filesystem>

namespace lockstep {

struct StandInOptions {
  int64_t train_records = 10'000;  ///< Spread over data_batch_1.bin .. data_batch_5.bin.
  int64_t test_records = 2'000;
  uint64_t seed = 0;
};

/// Writes a data set in CIFAR-10's binary format into the existing folder `dir`: ten shapes
/// (circle, ring, square, triangle, star, cross, crescent, heart, bars, arrow) of random place,
/// size, angle, colour and noise, equally many of each; batches.meta.txt has their names, and
/// README.txt says what this is
/// (see stand_in_note.h). One seed gives one data set; train and test share no record.
/// Errors: kInvalidArgument (a count outside [10, 1,000,000]), kIo (disk full).
void write_stand_in(const std::filesystem::path& dir, const StandInOptions& options = {});

}  // namespace lockstep
