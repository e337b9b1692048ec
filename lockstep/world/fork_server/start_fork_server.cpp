#include "lockstep/spawn.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "lockstep/base/auth.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/world/fork_server/fork_server.h"
#include "lockstep/world/fork_server/fork_server_message.h"

namespace lockstep {
namespace {

/// Linked only into programs that call start_fork_server(), because this file holds nothing else.
struct ForkServerNote {
  Elf64_Nhdr head;
  char owner[(sizeof kForkServerNoteOwner + 3) / 4 * 4];
};
[[gnu::section(".note.lockstep"), gnu::used, gnu::aligned(4)]] const ForkServerNote kNote = {
    {sizeof kForkServerNoteOwner, 0, kForkServerNoteType}, "Lockstep"};

}  // namespace

void start_fork_server(const std::function<void()>& prepare) {
  const char* number = std::getenv(kForkServerFdVariable);
  if (number == nullptr) return;
  UniqueFd agent(std::atoi(number));
  ::unsetenv(kForkServerFdVariable);
  ::fcntl(agent.get(), F_SETFD, FD_CLOEXEC);
  if (prepare) prepare();
  // The library for HMACs reads a file and fills tables at its first use.
  (void)hmac_sha256("", "");
  const int threads = threads_to_lose();
  if (!send_answer(agent.get(), {0, 0, 0, threads}) || threads > 0) ::_exit(0);
  serve_forks(std::move(agent));
}

}  // namespace lockstep
