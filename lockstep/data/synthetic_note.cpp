#include "lockstep/data/synthetic_note.h"

#include "lockstep/base/file.h"

namespace lockstep::inline internal {
namespace {

/// The beginning of the note in data sets of earlier versions.
constexpr const char* kEarlierWords = "Generated stand-in for CIFAR-10";

}  // namespace

bool is_synthetic(const std::filesystem::path& dir) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(dir / kSyntheticNote, failure)) return false;
  const std::string note = read_file(dir / kSyntheticNote);
  return note.starts_with(kSyntheticWords) || note.starts_with(kEarlierWords);
}

std::string synthetic_warning(const std::filesystem::path& dir) {
  return dir.string() +
         " is a synthetic data set (rendered shapes), not CIFAR-10; its accuracies cannot be "
         "compared";
}

}  // namespace lockstep::inline internal
