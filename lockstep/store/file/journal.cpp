#include "lockstep/store/file/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

#include "lockstep/base/auth.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr std::string_view kMagic = "lockstep store 1 ";
constexpr size_t kHeaderSize = kMagic.size() + 16 + 1 + 64 + 1;
constexpr size_t kRecordHeader = 2 * sizeof(uint32_t);
constexpr int64_t kMaxJournal = int64_t{1} << 30;

uint32_t checksum_of(std::string_view bytes) {
  uint32_t sum = 2166136261U;
  for (const char c : bytes) sum = (sum ^ static_cast<uint8_t>(c)) * 16777619U;
  return sum;
}

/// An OFD lock belongs to the open file, not to the process: closing another descriptor of the same
/// file does not release it.
bool try_lock(int fd, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/// Whether a header could begin like this.
bool is_beginning(std::string_view text) {
  const size_t size = std::min(text.size(), kMagic.size());
  return text.substr(0, size) == kMagic.substr(0, size);
}

bool same_file(int fd, const std::filesystem::path& path) {
  struct stat open_one {};
  struct stat named {};
  return ::fstat(fd, &open_one) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

void write_whole(int fd, std::string_view bytes, int64_t at, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), at);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw io_error("write " + path.string());
    bytes.remove_prefix(static_cast<size_t>(put));
    at += put;
  }
}

}  // namespace

Journal::Journal(const std::filesystem::path& folder, const std::string& secret)
    : path_(folder / "lockstep-store"),
      proof_(hex_digits(hmac_sha256(secret, "store in a folder"))) {}

Journal::Lock::Lock(Journal& journal, Deadline deadline) : journal_(journal) {
  auto pause = std::chrono::microseconds(100);
  while (true) {
    if (!journal_.fd_ || !same_file(journal_.fd_.get(), journal_.path_)) journal_.open();
    if (try_lock(journal_.fd_.get(), F_WRLCK)) {
      if (same_file(journal_.fd_.get(), journal_.path_)) return;
      continue;  // its last client has removed it meanwhile
    }
    if (errno != EAGAIN && errno != EACCES && errno != EINTR)
      throw io_error("lock " + journal_.path_.string());
    if (deadline.passed()) {
      throw Error(ErrorCode::kTimeout,
                  fmt::format("{} is locked by another process; it may be stopped in mid-change",
                              journal_.path_.string()));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(5000));
  }
}

Journal::Lock::~Lock() {
  try_lock(journal_.fd_.get(), F_UNLCK);
}

void Journal::open() {
  not_in_child_.reset();
  fd_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd_) throw io_error("open " + path_.string());
  not_in_child_.emplace(fd_.get());
}

void Journal::begin() {
  std::random_device random;
  header_ = fmt::format("{}{:08x}{:08x} {}\n", kMagic, random(), random(), proof_);
  if (::ftruncate(fd_.get(), 0) != 0) throw io_error("truncate " + path_.string());
  write_whole(fd_.get(), header_, 0, path_);
  end_ = static_cast<int64_t>(header_.size());
}

bool Journal::join(bool anybody) {
  header_ = read_part(fd_.get(), 0, kHeaderSize);
  if (header_.empty()) return false;
  // An interrupted begin(): a full disk, or a killed process.
  if (!anybody && header_.size() < kHeaderSize && is_beginning(header_)) return false;
  if (header_.size() < kHeaderSize || !header_.starts_with(kMagic) || header_.back() != '\n') {
    throw Error(ErrorCode::kMismatch,
                fmt::format("{} is not a store of this version of Lockstep; remove it, or give "
                            "another folder",
                            path_.string()));
  }
  if (!anybody) return false;
  if (!header_.ends_with(proof_ + "\n")) {
    throw Error(
        ErrorCode::kMismatch,
        fmt::format("{} is another job's store: its LOCKSTEP_SECRET differs", path_.string()));
  }
  end_ = kHeaderSize;
  return true;
}

void Journal::remove() {
  ::unlink(path_.c_str());
}

/// Opens by name: over NFS only an open is sure to see other hosts' writes.
UniqueFd Journal::open_again() const {
  UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno != ENOENT) throw io_error("open " + path_.string());
  return fd;
}

std::string Journal::read_part(int fd, int64_t from, int64_t max_bytes) const {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw io_error("stat " + path_.string());
  const int64_t size = std::clamp<int64_t>(status.st_size - from, 0, max_bytes);
  std::string bytes(static_cast<size_t>(size), '\0');
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t part =
        ::pread(fd, bytes.data() + got, bytes.size() - got, from + static_cast<int64_t>(got));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) throw io_error("read " + path_.string());
    if (part == 0) break;
    got += static_cast<size_t>(part);
  }
  bytes.resize(got);
  return bytes;
}

void Journal::read(const OnRecord& on_record) {
  const UniqueFd fd = open_again();
  const bool same = fd && read_part(fd.get(), 0, kHeaderSize) == header_;
  if (!same) {
    throw Error(ErrorCode::kPeerLost,
                fmt::format("the store in {} has ended, or begun anew: all its clients were taken "
                            "for dead",
                            path_.parent_path().string()));
  }
  const std::string bytes = read_part(fd.get(), end_, kMaxJournal);
  std::string_view rest = bytes;
  while (rest.size() >= kRecordHeader) {
    uint32_t numbers[2];
    std::memcpy(numbers, rest.data(), sizeof numbers);
    const auto damaged = [&](const std::string& why) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{} is damaged at byte {}: {}", path_.string(), end_, why));
    };
    if (numbers[0] > kMaxRequestBody) throw damaged("a record is too long");
    if (rest.size() - kRecordHeader < numbers[0]) return;  // being written, or left by a crash
    const auto body = rest.substr(kRecordHeader, numbers[0]);
    if (checksum_of(body) != numbers[1]) {
      if (rest.size() == kRecordHeader + body.size()) return;  // being written
      throw damaged("a checksum is wrong");
    }
    RequestFrame frame;
    try {
      frame = decode_request(body);
    } catch (const Error& error) {
      throw damaged(error.what());
    }
    rest.remove_prefix(kRecordHeader + body.size());
    end_ += static_cast<int64_t>(kRecordHeader + body.size());
    on_record(std::move(frame));
  }
}

void Journal::append(const RequestFrame& record) {
  const std::string frame = encode(record);  // a size comes first
  const auto body = std::string_view(frame).substr(sizeof(uint32_t));
  const uint32_t numbers[2] = {static_cast<uint32_t>(body.size()), checksum_of(body)};
  std::string bytes(reinterpret_cast<const char*>(numbers), sizeof numbers);
  bytes += body;
  if (end_ + static_cast<int64_t>(bytes.size()) > kMaxJournal) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} is full: {} bytes of changes", path_.string(), kMaxJournal));
  }
  // A killed process left the bytes after the last whole record.
  if (::ftruncate(fd_.get(), end_) != 0) throw io_error("truncate " + path_.string());
  try {
    write_whole(fd_.get(), bytes, end_, path_);
  } catch (const Error&) {
    if (::ftruncate(fd_.get(), end_) != 0) {
      // the next append does it
    }
    throw;
  }
  end_ += static_cast<int64_t>(bytes.size());
}

}  // namespace lockstep::inline internal
