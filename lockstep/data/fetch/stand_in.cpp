#include "lockstep/data/fetch/stand_in.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/file.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/data/fetch/shapes.h"
#include "lockstep/data/stand_in_note.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

void check_count(const char* what, int64_t count) {
  if (count >= 10 && count <= 1'000'000) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} {} records; 10 to 1000000 can be generated", count, what));
}

std::string make_records(uint64_t seed, Split split, int64_t first, int64_t last) {
  std::string bytes(static_cast<size_t>((last - first) * Cifar10::kRecordBytes), '\0');
  auto* at = reinterpret_cast<uint8_t*>(bytes.data());
  for (int64_t i = first; i < last; ++i, at += Cifar10::kRecordBytes) {
    const int shape = static_cast<int>(i % Cifar10::kClasses);
    at[0] = static_cast<uint8_t>(shape);
    draw_shape(shape, seed, split == Split::kTrain ? 0 : 1, static_cast<uint64_t>(i),
               {at + 1, static_cast<size_t>(Cifar10::kImageBytes)});
  }
  return bytes;
}

void write_split(const std::filesystem::path& dir, uint64_t seed, Split split, int64_t records) {
  const auto& files = cifar10_files(split);
  const auto count = static_cast<int64_t>(files.size());
  for (int64_t i = 0; i < count; ++i) {
    write_file_atomically(
        dir / files[static_cast<size_t>(i)],
        make_records(seed, split, records * i / count, records * (i + 1) / count));
  }
}

}  // namespace

void write_stand_in(const std::filesystem::path& dir, const StandInOptions& options) {
  check_count("training", options.train_records);
  check_count("test", options.test_records);
  write_split(dir, options.seed, Split::kTrain, options.train_records);
  write_split(dir, options.seed, Split::kTest, options.test_records);
  write_file_atomically(dir / "batches.meta.txt",
                        fmt::format("{}\n", fmt::join(kShapeNames, "\n")));
  write_file_atomically(
      dir / kStandInNote,
      fmt::format("{}: rendered shapes in its binary format.\n{} training and {} test "
                  "records, seed {}. Made by 'lockstep data cifar10'.\n",
                  kStandInWords, options.train_records, options.test_records, options.seed));
}

}  // namespace lockstep
