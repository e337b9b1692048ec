#include "lockstep/launch/agent/step_board.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/launch/progress.h"

namespace lockstep {

StepBoard::StepBoard(int workers)
    : memory_(::memfd_create(kStepBoardName, MFD_CLOEXEC | MFD_ALLOW_SEALING)),
      size_(static_cast<size_t>(workers)) {
  if (!memory_ || ::ftruncate(memory_.get(), workers) != 0) throw io_error("memfd_create");
  ::fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK);
}

std::string StepBoard::path() const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), memory_.get());
}

Steps StepBoard::steps() const {
  std::string bytes(size_, '\0');
  if (::pread(memory_.get(), bytes.data(), bytes.size(), 0) < 0) return Steps::kUnknown;
  if (bytes.find(kStepped) != std::string::npos) return Steps::kSome;
  return bytes.find(kExpectsSteps) != std::string::npos ? Steps::kNone : Steps::kUnknown;
}

}  // namespace lockstep
