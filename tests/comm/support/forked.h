#pragma once
// Tests whose cases are processes: shared memory, and several cases at once.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <vector>

namespace lockstep::testing {

/// A T that processes forked later share with this one.
template <class T>
class Shared {
 public:
  Shared() {
    void* const place =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) throw std::runtime_error("mmap");
    object_ = new (place) T{};
  }
  ~Shared() { ::munmap(object_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }

 private:
  T* object_;
};

/// Runs each case in a process of its own, `at_once` of them at a time: they mostly wait. A failure
/// there is a failure here.
template <class Case>
void run_forked(const std::vector<Case>& cases, size_t at_once, void (*run)(const Case&)) {
  for (size_t begin = 0; begin < cases.size(); begin += at_once) {
    std::vector<pid_t> running;
    for (size_t i = begin; i < std::min(begin + at_once, cases.size()); ++i) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        run(cases[i]);
        std::fflush(nullptr);
        ::_exit(::testing::Test::HasFailure() ? 1 : 0);
      }
      running.push_back(pid);
    }
    for (const pid_t pid : running) {
      int status = 0;
      ASSERT_EQ(::waitpid(pid, &status, 0), pid);
      EXPECT_EQ(status, 0);
    }
  }
}

}  // namespace lockstep::testing
