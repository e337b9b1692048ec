#include "lockstep/checkpoint/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/generation_token.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/namespaces.h"
#include "lockstep/base/number.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/text.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/checkpoint/staged_folder.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNoJob = "none";
constexpr std::string_view kMark = ".writer-";

std::string short_digest(const std::string& text) {
  Hash hash;
  hash.update(text.data(), text.size());
  return hash.hex().substr(0, 8);
}

/// A host's name without the characters that have a meaning in Lockstep's names.
std::string plain(std::string name) {
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-') c = '_';
  }
  return name.substr(0, 40);
}

/// Start time of a process; 0 if it does not exist.
uint64_t start_of(int64_t pid) {
  return std::strtoull(process_start(pid).c_str(), nullptr, 10);
}

/// The generation of a mark of `job`; nothing for other names.
std::optional<int64_t> generation_of_mark(const std::string& file, const std::string& job) {
  const std::string start = fmt::format("{}{}-", kMark, job);
  if (!file.starts_with(start)) return std::nullopt;
  return as_number<int64_t>(std::string_view(file).substr(start.size()));
}

std::string mark_name(const WriterName& writer) {
  return fmt::format("{}{}-{}", kMark, writer.job, writer.generation);
}

/// The token in a mark; empty if there is none (any more).
std::string read_mark(const fs::path& mark) {
  std::string token;
  std::getline(std::ifstream(mark), token);
  return token;
}

}  // namespace

std::string WriterName::text() const {
  return fmt::format("{}+{}+{}+{:x}+{}+{}", job, generation, host, pid_space, pid, start);
}

std::optional<WriterName> WriterName::parse(const std::string& text) {
  const auto fields = split(text.substr(0, text.find('.')), '+');
  if (fields.size() != 6) return std::nullopt;
  WriterName name{.job = fields[0], .host = fields[2]};
  const auto number = [](const std::string& field, auto& value, int base) {
    const auto [at, error] =
        std::from_chars(field.data(), field.data() + field.size(), value, base);
    return error == std::errc() && at != field.data();
  };
  const bool good = number(fields[1], name.generation, 10) &&
                    number(fields[3], name.pid_space, 16) && number(fields[4], name.pid, 10) &&
                    number(fields[5], name.start, 10);
  return good ? std::optional(name) : std::nullopt;
}

WriterName WriterName::own(const std::string& job_id, int64_t generation) {
  return {job_id.empty() ? kNoJob : short_digest(job_id),
          generation,
          plain(host_name()),
          pid_space_of_all_hosts(),
          ::getpid(),
          start_of(::getpid())};
}

bool is_left_over(const WriterName& writer, const WriterName& own) {
  if (writer.job == own.job && writer.job != kNoJob && writer.generation < own.generation) {
    return true;
  }
  const bool of_this_host = writer.host == own.host && writer.pid_space == own.pid_space;
  return of_this_host && start_of(writer.pid) != writer.start;
}

Writer::Writer(fs::path dir, const std::string& job_id, int64_t generation, std::string token)
    : dir_(std::move(dir)), name_(WriterName::own(job_id, generation)), token_(std::move(token)) {}

void Writer::check_before_mark() const {
  if (fs::is_directory(dir_)) look(begins());
}

void Writer::replace_others() const {
  const auto names = list_folder(dir_);
  look(begins());
  leave_mark();
  const std::string own = mark_name(name_);
  for (const auto& name : names) {
    const auto earlier = generation_of_mark(name, name_.job);
    const bool is_mark = name.starts_with(kMark) && name != own;
    if (is_mark && (begins() || (earlier && *earlier < name_.generation))) {
      ::unlink((dir_ / name).c_str());
    }
  }
  sync_folder(dir_);
}

/// If two come at the same time, one makes the file. Until its token is written, the other reads
/// none, so that one gives way.
void Writer::leave_mark() const {
  const fs::path mark = dir_ / mark_name(name_);
  // Marks of an earlier launch were checked before.
  if (begins() && read_mark(mark) != token_) ::unlink(mark.c_str());
  const UniqueFd made(::open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!made && errno == EEXIST) return check();
  if (!made) throw io_error("create " + mark.string());
  const auto size = static_cast<ssize_t>(token_.size());
  if (::write(made.get(), token_.data(), token_.size()) != size || ::fsync(made.get()) != 0) {
    throw io_error("write " + mark.string());
  }
}

/// True if another writer has replaced this one. A job may begin although another of its name, of
/// an earlier launch, got further.
bool Writer::replaced_by(const std::string& file, int64_t generation, bool begins) const {
  if (generation < name_.generation) return false;
  const std::string token = read_mark(dir_ / file);
  if (begins && (token_.empty() || launch_of(token) != launch_of(token_))) return false;
  return generation > name_.generation || token != token_;
}

void Writer::look(bool begins) const {
  for (const auto& name : list_folder(dir_)) {
    const auto other = generation_of_mark(name, name_.job);
    if (!other || !replaced_by(name, *other, begins)) continue;
    throw Error(ErrorCode::kMismatch,
                *other == name_.generation
                    ? fmt::format("another half of this job, cut off from this one, writes into {} "
                                  "as generation {} too: this process gives way, and ends",
                                  dir_.string(), *other)
                    : fmt::format("generation {} of this job writes into {}: this process is one "
                                  "of generation {}, which was given up, and ends",
                                  *other, dir_.string(), name_.generation));
  }
}

void Writer::check() const {
  if (!dir_.empty()) look(false);
}

std::string Writer::hidden(const std::string& name) const {
  return fmt::format(".{}.tmp-{}", name, name_.text());
}

}  // namespace lockstep::inline internal

namespace lockstep {

WriterFence::WriterFence() : writer_(std::make_shared<Writer>()) {}

WriterFence::WriterFence(const fs::path& dir, const std::string& job_id, int64_t generation,
                         const std::string& token)
    : writer_(std::make_shared<Writer>(dir, job_id, generation, token)) {
  make_folder(dir);
  writer_->replace_others();
  remove_leftovers(dir, *this);
}

void WriterFence::check() const {
  writer_->check();
}

}  // namespace lockstep
