#include "lockstep/data/pictures/folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cmath>
#include <exception>
#include <thread>

#include "lockstep/base/counted.h"
#include "lockstep/data/pictures/classes.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReaders = 8;  // more than cores: they wait for the disk

[[noreturn]] void cannot_read(const fs::path& folder, const std::error_code& failure) {
  throw Error(ErrorCode::kIo, fmt::format("read {}: {}", folder.string(), failure.message()));
}

bool is_hidden(std::string_view name) {
  return name.starts_with('.');
}

/// Calls `found(name, is_folder)` for each visible entry. Links count as their targets.
template <typename Found>
void for_each_entry(const fs::path& folder, const Found& found) {
  std::error_code failure;
  fs::directory_iterator entry(folder, failure);
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    std::error_code gone;  // a broken link
    if (!is_hidden(name)) found(name, entry->is_directory(gone));
  }
  if (failure) cannot_read(folder, failure);
}

using FolderId = std::pair<dev_t, ino_t>;

FolderId id_of(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    cannot_read(folder, std::error_code(errno, std::generic_category()));
  }
  return {status.st_dev, status.st_ino};
}

/// The pictures of one class, as names relative to the data set's folder.
class ClassReader {
 public:
  ClassReader(const fs::path& folder, const std::string& name) : folder_(folder) { read(name); }

  std::vector<std::string> sorted() {
    std::sort(names_.begin(), names_.end(), [](const auto& a, const auto& b) {
      const auto parts = [](std::string_view name) {
        const size_t slash = name.rfind('/');
        return std::pair(name.substr(0, slash), name.substr(slash));
      };
      return parts(a) < parts(b);
    });
    return std::move(names_);
  }

 private:
  void read(const std::string& below) {
    const fs::path folder = folder_ / below;
    const FolderId id = id_of(folder);
    if (std::find(above_.begin(), above_.end(), id) != above_.end()) return;
    above_.push_back(id);
    for_each_entry(folder, [&](const std::string& name, bool is_folder) {
      if (is_folder) {
        read(below + "/" + name);
      } else if (is_picture_name(name)) {
        names_.push_back(below + "/" + name);
      }
    });
    above_.pop_back();
  }

  const fs::path& folder_;
  std::vector<FolderId> above_;
  std::vector<std::string> names_;
};

/// FNV-1a: any hash would do that is the same on every machine and in every version.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char byte : text) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001B3;
  hash ^= hash >> 32;  // the last bytes alone would decide the highest bits
  return hash * 0x9E3779B97F4A7C15;
}

/// The hash that separates the pictures for evaluation, which have it or a smaller one.
uint64_t limit_of(const std::vector<std::string>& names, int64_t held_out) {
  std::vector<uint64_t> hashes;
  for (const auto& name : names) hashes.push_back(hash_of(name));
  const size_t count = std::max<size_t>(1, names.size() / static_cast<size_t>(held_out));
  std::nth_element(hashes.begin(), hashes.begin() + static_cast<ptrdiff_t>(count - 1),
                   hashes.end());
  return hashes[count - 1];
}

std::vector<std::string> chosen_of(std::vector<std::string> names, const FolderOptions& options) {
  if (options.held_out > 0 && options.split != Split::kAll && !names.empty()) {
    const bool one = names.size() == 1;  // it is for training
    const uint64_t limit = one ? 0 : limit_of(names, options.held_out);
    std::erase_if(names, [&](const std::string& name) {
      const bool evaluates = !one && hash_of(name) <= limit;
      return evaluates != (options.split == Split::kTest);
    });
  }
  const auto count = std::max(1LL, std::llround(static_cast<double>(names.size()) * options.ratio));
  names.resize(std::min(names.size(), static_cast<size_t>(count)));
  return names;
}

/// Calls `work(i)` for each i in [0, count), on several threads. Rethrows the first exception.
template <typename Work>
void for_each_in_parallel(size_t count, const Work& work) {
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> failures(count);
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < std::min(kReaders, count); ++i) threads.emplace_back(run);
  run();
  threads.clear();  // joins them
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

std::string no_picture(const fs::path& folder) {
  return fmt::format("{} holds no picture (.jpg, .jpeg, .png, .bmp, .webp) in a sub-folder",
                     folder.string());
}

std::string none_chosen(const fs::path& folder, const FolderOptions& options) {
  if (options.held_out == 0 || options.split != Split::kTest) return no_picture(folder);
  return fmt::format("{}: no class has two pictures, of which one could be held out",
                     folder.string());
}

void note_empty_classes(PictureIndex& index, const PictureClasses& classes, const fs::path& folder,
                        const std::vector<size_t>& empty) {
  if (empty.empty()) return;
  constexpr size_t kNamed = 5;
  std::string names;
  for (size_t i = 0; i < std::min(kNamed, empty.size()); ++i) {
    names += (i == 0 ? "" : ", ") + classes.names[empty[i]];
  }
  if (empty.size() > kNamed) names += ", ...";
  index.add_note(fmt::format("{}: no picture of {}: {}", folder.string(),
                             counted(static_cast<int64_t>(empty.size()), "class", "classes"),
                             names));
}

}  // namespace

bool is_picture_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> kEnds = {".jpg", ".jpeg", ".png", ".bmp", ".webp"};
  const size_t slash = name.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? name : name.substr(slash + 1);
  const size_t dot = last.rfind('.');
  if (is_hidden(last) || dot == std::string_view::npos) return false;
  std::string end(last.substr(dot));
  std::transform(end.begin(), end.end(), end.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kEnds.begin(), kEnds.end(), end) != kEnds.end();
}

PictureClasses folder_classes(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw Error(ErrorCode::kNotFound, fmt::format("no folder {}", folder.string()));
  }
  std::vector<std::string> names;
  for_each_entry(folder, [&](const std::string& name, bool is_folder) {
    if (is_folder) names.push_back(name);
  });
  if (names.empty()) throw Error(ErrorCode::kNotFound, no_picture(folder));
  std::sort(names.begin(), names.end());
  return PictureClasses::named(std::move(names));
}

PictureIndex index_folder(const fs::path& folder, const FolderOptions& options,
                          const std::optional<PictureClasses>& classes) {
  const PictureClasses found = folder_classes(folder);
  const PictureClasses& all = classes ? *classes : found;
  const ClassNumbers numbers(all);
  std::vector<std::pair<int64_t, size_t>> order;  // label, folder
  for (size_t i = 0; i < found.names.size(); ++i) {
    const int64_t label = numbers.of_name(found.names[i]);
    if (label < 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: training {}", (folder / found.names[i]).string(),
                              numbers.no_class(found.names[i])));
    }
    order.emplace_back(label, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::vector<std::string>> names(found.names.size());
  for_each_in_parallel(names.size(), [&](size_t i) {
    names[i] = chosen_of(ClassReader(folder, found.names[i]).sorted(), options);
  });
  size_t count = 0;
  size_t bytes = 0;
  for (const auto& of_class : names) {
    count += of_class.size();
    for (const auto& name : of_class) bytes += name.size();
  }
  if (count == 0) throw Error(ErrorCode::kNotFound, none_chosen(folder, options));
  PictureIndex index(folder, all);
  index.reserve(count, bytes);
  std::vector<size_t> empty;
  for (const auto& [label, i] : order) {
    if (names[i].empty()) empty.push_back(i);
    for (const auto& name : std::exchange(names[i], {})) index.add(name, label);
  }
  note_empty_classes(index, found, folder, empty);
  return index;
}

}  // namespace lockstep
