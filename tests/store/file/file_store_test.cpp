// A folder's store whose processes are killed or stopped, or whose folder has other files.

#include "lockstep/store/file/file_store.h"
#include "lockstep/base/literals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <functional>
#include <thread>

#include "lockstep/base/file.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/store/file/journal.h"
#include "tests/store/helpers.h"
#include "tests/support/killed_parent.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

using testing::await_value;
using testing::error_of;
using testing::mentions;
using testing::soon;
using testing::wait_until_erased;

class FileStoreTest : public ::testing::Test {
 protected:
  std::shared_ptr<KeyValueStore> join(const std::string& secret = "") const {
    return join_file_store(folder_.path(), secret, soon());
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename().string());
    return names;
  }
  void append(const std::string& bytes) const {
    std::ofstream(folder_ / "lockstep-store", std::ios::app | std::ios::binary) << bytes;
  }

  TempFolder folder_;
};

/// A process with a client of the folder's store.
class ClientProcess {
 public:
  ClientProcess(const TempFolder& folder, const std::function<void(KeyValueStore&)>& body)
      : pid_(::fork()) {
    if (pid_ != 0) return;
    while (true) {
      try {
        const auto store = join_file_store(folder.path(), "", soon());
        body(*store);
        ::_exit(0);  // without the store's destructor: as a killed process
      } catch (const Error&) {
        // This machine was too busy, and the client was late. It begins anew.
      }
    }
  }
  ~ClientProcess() { end(SIGKILL); }
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  void end(int signal = 0) {
    if (pid_ <= 0) return;
    if (signal != 0) ::kill(pid_, signal);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  /// Waits until it has stopped itself.
  void wait_until_stopped() const { ::waitpid(pid_, nullptr, WUNTRACED); }

 private:
  pid_t pid_;
};

TEST_F(FileStoreTest, AKilledHoldersKeyIsGoneLongBeforeItsTime) {
  const auto store = join();
  ClientProcess holder(folder_, [](KeyValueStore& own) {
    own.set_with_lease("k", "v", 1h, soon());
    own.watch("never", 0, Deadline::after(1h));
  });
  EXPECT_EQ(await_value(*store, "k"), "v");
  holder.end(SIGKILL);
  wait_until_erased(*store, "k");
  EXPECT_EQ(files().size(), 2u);  // the journal, and this client
}

TEST_F(FileStoreTest, AForkedChildDoesNotKeepItsParentsKey) {
  const auto store = join();
  std::array<int, 2> ends{};  // the child lives until this test has closed its end
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  ClientProcess holder(folder_, [&](KeyValueStore& own) {
    own.set_with_lease("k", "v", 1h, soon());
    if (::fork() == 0) {
      in.reset();
      char byte = 0;
      ::_exit(::read(out.get(), &byte, 1) == 0 ? 0 : 1);
    }
    own.set("forked", "", soon());
    own.watch("never", 0, Deadline::after(1h));
  });
  await_value(*store, "forked");
  holder.end(SIGKILL);
  wait_until_erased(*store, "k");
}

TEST_F(FileStoreTest, AForkedChildDoesNotKeepTheLockOfItsParentsChange) {
  const testing::KilledParent parent([&](const auto& end) {
    Journal journal(folder_.path(), "");
    const Journal::Lock change(journal, soon());
    end();
  });
  Journal journal(folder_.path(), "");
  EXPECT_NO_THROW(Journal::Lock(journal, Deadline::after(5s)));
}

TEST_F(FileStoreTest, AStoppedHoldersKeyIsGoneAfterItsTime) {
  const auto store = join();
  // It stops itself between two calls: within a change it would keep the lock.
  ClientProcess holder(folder_, [](KeyValueStore& own) {
    own.set_with_lease("k", "v", 1s, soon());
    ::raise(SIGSTOP);
  });
  holder.wait_until_stopped();
  wait_until_erased(*store, "k");
  EXPECT_TRUE(store->set_with_lease("k", "mine", 1h, soon()));
}

TEST_F(FileStoreTest, ASilentHolderLearnsThatItLostItsKeys) {
  const auto holder = join();
  const auto store = join();
  EXPECT_TRUE(holder->set_with_lease("k", "v", 50ms, soon()));
  wait_until_erased(*store, "k");
  for (int call = 0; call < 2; ++call) {
    const auto error = error_of([&] { holder->set_with_lease("k", "v", 50ms, soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    EXPECT_TRUE(mentions(error, "nothing was heard")) << error.what();
  }
}

/// Sets a hundred keys that are missing, as others do, and publishes the values that they have
/// then.
void set_missing_keys(KeyValueStore& store, const std::string& own) {
  for (int i = 0; i < 100; ++i) {
    const std::string key = std::to_string(i);
    store.set_if_missing("key/" + key, own, soon());
    store.set(own + "/" + key, store.try_get("key/" + key, soon()).value(), soon());
  }
}

TEST_F(FileStoreTest, OneOfManyProcessesSetsAMissingKey) {
  const auto store = join();
  ClientProcess first(folder_, [](KeyValueStore& own) { set_missing_keys(own, "first"); });
  ClientProcess second(folder_, [](KeyValueStore& own) { set_missing_keys(own, "second"); });
  set_missing_keys(*store, "third");
  first.end();
  second.end();
  for (int i = 0; i < 100; ++i) {
    const std::string key = std::to_string(i);
    const auto value = store->try_get("key/" + key, soon());
    for (const std::string own : {"first/", "second/", "third/"})
      EXPECT_EQ(store->try_get(own + key, soon()), value) << own << key;
  }
}

TEST_F(FileStoreTest, KilledWritersLeaveAWholeStore) {
  const auto store = join();
  for (int round = 0; round < 10; ++round) {
    ClientProcess writer(folder_, [](KeyValueStore& own) {
      const std::string value(100'000, 'x');
      for (int i = 1; true; ++i) {
        own.set("large", value, soon());
        // The journal has a limit, and the kill may be late.
        if (i % 10 == 0) std::this_thread::sleep_for(10ms);
      }
    });
    store->erase("large", soon());
    EXPECT_EQ(await_value(*store, "large").size(), 100'000u);
    writer.end(SIGKILL);
  }
  store->set("k", "v", soon());
  EXPECT_EQ(join()->try_get("k", soon()), "v");
}

TEST_F(FileStoreTest, ARecordThatIsCutShortIsOverwritten) {
  const auto store = join();
  const auto other = join();
  store->set("k", "1", soon());
  append(std::string("\x40\0\0\0\x11\x22", 6));
  EXPECT_EQ(other->try_get("k", soon()), "1");
  other->set("k", "2", soon());
  EXPECT_EQ(store->try_get("k", soon()), "2");
}

TEST_F(FileStoreTest, ADamagedJournalIsNamed) {
  const auto store = join();
  append(std::string("\x04\0\0\0\x11\x22\x33\x44wxyz and more", 21));
  const auto error = error_of([&] { store->try_get("k", soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_TRUE(mentions(error, "lockstep-store") && mentions(error, "byte ")) << error.what();
  append(std::string(64, '\xff'));
  EXPECT_EQ(error_of([&] { store->set("k", "v", soon()); }).code(), ErrorCode::kCorrupt);
}

TEST_F(FileStoreTest, WhatACrashedJobLeftIsNotThere) {
  ClientProcess crashed(folder_, [](KeyValueStore& own) {
    own.set("old", "", soon());
    own.set_with_lease("held", "", 1h, soon());
  });
  crashed.end();
  EXPECT_EQ(files().size(), 2u);
  const auto store = join("another job's secret");
  EXPECT_EQ(store->list("", soon()).size(), 0u);
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(FileStoreTest, TheLastThatLeavesClearsTheFolder) {
  auto first = join();
  auto second = join();
  first->set("k", "v", soon());
  first.reset();
  EXPECT_EQ(second->try_get("k", soon()), "v");
  second.reset();
  EXPECT_EQ(files().size(), 0u);
}

TEST_F(FileStoreTest, AStoreWhoseBeginningWasCutShortBeginsAnew) {
  append("lockstep store 1 0123");
  const auto store = join();
  store->set("k", "v", soon());
  EXPECT_EQ(join()->try_get("k", soon()), "v");
}

TEST_F(FileStoreTest, AnotherJobIsRefused) {
  const auto store = join("one secret");
  const auto error = error_of([&] { join("another"); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_TRUE(mentions(error, "SECRET")) << error.what();
  store->set("k", "v", soon());
  EXPECT_EQ(join("one secret")->try_get("k", soon()), "v");
}

TEST_F(FileStoreTest, AStoreThatWasTakenAwayIsAnError) {
  const auto store = join();
  std::filesystem::remove(folder_ / "lockstep-store");
  EXPECT_EQ(error_of([&] { store->try_get("k", soon()); }).code(), ErrorCode::kPeerLost);
}

TEST_F(FileStoreTest, ForeignFilesAreRefusedByName) {
  write_file_atomically(folder_ / "thesis.tex", "text");
  auto error = error_of([&] { join(); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(mentions(error, "thesis.tex")) << error.what();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "lockstep-store")) << "nothing is left behind";
  std::filesystem::remove(folder_ / "thesis.tex");
  const std::string long_text(1000, 'x');
  for (const std::string& text : {std::string("x"), long_text, "lockstep store 2 " + long_text}) {
    write_file_atomically(folder_ / "lockstep-store", text);
    error = error_of([&] { join(); });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_TRUE(mentions(error, "lockstep-store")) << error.what();
    EXPECT_EQ(read_file(folder_ / "lockstep-store"), text);
  }
}

}  // namespace
}  // namespace lockstep
