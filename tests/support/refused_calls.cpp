#include "tests/support/refused_calls.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include <cstdint>
#include <future>
#include <stdexcept>

namespace lockstep::testing {

void refuse_calls(const std::vector<int>& calls, int error) {
  const auto refusal = SECCOMP_RET_ERRNO | static_cast<uint32_t>(error);
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, refusal));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    throw std::runtime_error("seccomp");
  }
}

void run_refused(const std::vector<int>& calls, int error, const std::function<void()>& body) {
  std::async(std::launch::async, [&] {
    if (error != 0) refuse_calls(calls, error);
    body();
  }).get();
}

}  // namespace lockstep::testing
