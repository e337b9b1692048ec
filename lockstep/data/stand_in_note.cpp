#include "lockstep/data/stand_in_note.h"

#include "lockstep/base/file.h"

namespace lockstep {

bool is_stand_in(const std::filesystem::path& dir) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(dir / kStandInNote, failure)) return false;
  return read_file(dir / kStandInNote).starts_with(kStandInWords);
}

std::string stand_in_warning(const std::filesystem::path& dir) {
  return dir.string() +
         " is a generated stand-in (rendered shapes), not CIFAR-10; its accuracies cannot be "
         "compared";
}

}  // namespace lockstep
