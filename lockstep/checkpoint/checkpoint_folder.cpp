#include "lockstep/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step_";
constexpr const char* kStateFile = "state.json";

std::optional<int64_t> parse_step_folder(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (name.empty() || error != std::errc() || end != name.data() + name.size() || step < 0) {
    return std::nullopt;
  }
  return step;
}

/// "best.ckpt", "e12.safetensors".
bool is_weights_file(std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view stem = name.substr(0, dot), ending = name.substr(dot);
  if (ending != ".ckpt" && ending != ".safetensors") return false;
  return stem == "best" || (stem.size() > 1 && stem[0] == 'e' &&
                            stem.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

std::string hidden_name(const std::string& name) {
  return fmt::format(".{}.tmp-{}", name, ::getpid());
}

std::optional<double> read_metric(const fs::path& folder, const std::string& name) {
  try {
    const fs::path file = folder / kStateFile;
    const auto state = decode_training_state(read_file(file), file.string()).state;
    const auto& value = state.metric_value;
    return state.metric == name && value && std::isfinite(*value) ? value : std::nullopt;
  } catch (const Error& error) {
    log_debug(fmt::format("ranked as without metric: {}", error.what()));
    return std::nullopt;
  }
}

/// Names of the whole checkpoints, by step.
std::vector<CheckpointEntry> find_step_folders(const fs::path& dir) {
  std::vector<CheckpointEntry> entries;
  std::error_code none;
  for (const auto& item : fs::directory_iterator(dir, none)) {
    const std::string name = item.path().filename().string();
    const auto step = parse_step_folder(name);
    if (step && fs::exists(item.path() / kStateFile, none)) {
      entries.push_back({name, *step, std::nullopt});
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.step < b.step; });
  return entries;
}

/// Takes the place of `to`, which may be a filled folder.
void replace_folder(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  if (errno != ENOTEMPTY && errno != EEXIST) throw io_error("rename to " + to.string());
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(from);  // the older folder has this name now
    return;
  }
  // A file system without exchange, e.g. NFS: for an instant neither is there; `latest` or the
  // newest other checkpoint is what a crash right then would leave to resume from.
  remove_checkpoint(to.parent_path(), to.filename().string());
  if (::rename(from.c_str(), to.c_str()) != 0) throw io_error("rename to " + to.string());
}

}  // namespace

std::string step_folder_name(int64_t step) {
  return fmt::format("{}{:06}", kPrefix, step);
}

std::vector<CheckpointEntry> list_checkpoints(const fs::path& dir, const std::string& metric) {
  std::vector<CheckpointEntry> entries = find_step_folders(dir);
  for (CheckpointEntry& entry : entries) entry.metric = read_metric(dir / entry.name, metric);
  return entries;
}

fs::path find_checkpoint(const fs::path& path) {
  std::error_code none;
  if (fs::exists(path / kStateFile, none)) return path;
  if (fs::exists(path / "latest" / kStateFile, none)) {
    const fs::path target = fs::read_symlink(path / "latest", none);
    return none ? path / "latest" : path / target;
  }
  const auto entries = find_step_folders(path);
  if (!entries.empty()) return path / entries.back().name;
  if (!fs::exists(path, none)) {
    throw Error(ErrorCode::kNotFound, path.string() + ": no such checkpoint or folder of them");
  }
  if (!fs::is_directory(path, none)) {
    throw Error(ErrorCode::kInvalidArgument,
                path.string() +
                    ": a file, and a checkpoint is a folder (step_*, or the one that "
                    "holds it); weights alone are for model.pretrained");
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("{}: no checkpoint there (neither {}, nor latest, nor {}*/{})",
                          path.string(), kStateFile, kPrefix, kStateFile));
}

bool has_checkpoint(const fs::path& path) {
  std::error_code none;
  return fs::exists(path / kStateFile, none) || fs::exists(path / "latest" / kStateFile, none) ||
         !find_step_folders(path).empty();
}

fs::path weights_in(const fs::path& path, bool averaged) {
  if (!fs::is_directory(path)) return path;
  const fs::path folder = find_checkpoint(path);
  return folder / (averaged && fs::exists(folder / kEmaFile) ? kEmaFile : kModelFile);
}

StagedFolder::StagedFolder(const fs::path& dir, const std::string& name)
    : staged_(dir / hidden_name(name)), final_(dir / name) {
  std::error_code error;
  fs::create_directories(staged_, error);
  if (error) {
    throw Error(ErrorCode::kIo, fmt::format("make {}: {}", staged_.string(), error.message()));
  }
}

StagedFolder::~StagedFolder() {
  std::error_code none;
  if (!published_) fs::remove_all(staged_, none);
}

void StagedFolder::publish() {
  sync_folder(staged_);
  replace_folder(staged_, final_);
  published_ = true;
  sync_folder(final_.parent_path());
}

void point_link(const fs::path& dir, const std::string& name, const std::string& target) {
  const fs::path link = dir / name;
  std::error_code none;
  if (fs::read_symlink(link, none) == target) return;
  const fs::path temporary = dir / hidden_name(name);
  ::unlink(temporary.c_str());
  if (::symlink(target.c_str(), temporary.c_str()) != 0) throw io_error("link " + link.string());
  if (::rename(temporary.c_str(), link.c_str()) != 0) {
    const Error error = io_error("rename to " + link.string());
    ::unlink(temporary.c_str());
    throw error;
  }
  sync_folder(dir);
}

void remove_link(const fs::path& dir, const std::string& name) {
  const fs::path link = dir / name;
  if (!fs::is_symlink(fs::symlink_status(link))) return;
  if (::unlink(link.c_str()) != 0) throw io_error("delete " + link.string());
  sync_folder(dir);
}

void remove_checkpoint(const fs::path& dir, const std::string& name) {
  const fs::path hidden = dir / (hidden_name(name) + "-old");
  if (::rename((dir / name).c_str(), hidden.c_str()) != 0) {
    throw io_error("delete " + (dir / name).string());
  }
  std::error_code error;
  fs::remove_all(hidden, error);
  if (error) {
    throw Error(ErrorCode::kIo, fmt::format("delete {}: {}", hidden.string(), error.message()));
  }
}

void remove_leftovers(const fs::path& dir) {
  std::error_code none;
  std::vector<fs::path> found;
  for (const auto& item : fs::directory_iterator(dir, none)) {
    const std::string name = item.path().filename().string();
    const size_t end = name.find(".tmp-");
    if (end == std::string::npos) continue;
    const bool ours = name.starts_with(".step_") || name.starts_with(".latest.") ||
                      name.starts_with(".best.") || is_weights_file(name.substr(0, end));
    if (ours) found.push_back(item.path());
  }
  for (const fs::path& path : found) fs::remove_all(path, none);
}

FileDigest digest_file(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT) throw Error(ErrorCode::kNotFound, path.string() + ": no such file");
  if (!fd) throw io_error("open " + path.string());
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> hash(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr);
  FileDigest digest;
  std::vector<char> buffer(1 << 20);
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw io_error("read " + path.string());
    if (got == 0) break;
    EVP_DigestUpdate(hash.get(), buffer.data(), static_cast<size_t>(got));
    digest.bytes += got;
  }
  uint8_t bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_DigestFinal_ex(hash.get(), bytes, &size);
  for (unsigned i = 0; i < size; ++i) digest.sha256 += fmt::format("{:02x}", bytes[i]);
  return digest;
}

}  // namespace lockstep
