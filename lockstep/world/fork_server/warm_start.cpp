#include "lockstep/spawn.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "lockstep/base/auth.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/world/fork_server/fork_server.h"
#include "lockstep/world/fork_server/warm_message.h"

namespace lockstep {
namespace {

/// Linked only into programs that call warm_start(), because this file holds nothing else.
struct WarmNote {
  Elf64_Nhdr head;
  char owner[(sizeof kWarmNoteOwner + 3) / 4 * 4];
};
[[gnu::section(".note.lockstep"), gnu::used, gnu::aligned(4)]] const WarmNote kWarmNote = {
    {sizeof kWarmNoteOwner, 0, kWarmNoteType}, "Lockstep"};

}  // namespace

void warm_start(const std::function<void()>& prepare) {
  const char* number = std::getenv(kWarmFdVariable);
  if (number == nullptr) return;
  UniqueFd agent(std::atoi(number));
  ::unsetenv(kWarmFdVariable);
  ::fcntl(agent.get(), F_SETFD, FD_CLOEXEC);
  if (prepare) prepare();
  // The library for HMACs reads a file and fills tables at its first use.
  (void)hmac_sha256("", "");
  const int threads = threads_to_lose();
  if (!send_answer(agent.get(), {0, 0, 0, threads}) || threads > 0) ::_exit(0);
  serve_forks(std::move(agent));
}

}  // namespace lockstep
