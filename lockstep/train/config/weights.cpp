#include "lockstep/train/config/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

namespace fs = std::filesystem;

namespace {

bool is_address(const std::string& given) {
  return given.starts_with("http:") || given.starts_with("https:");
}

std::string last_component(const std::string& address) {
  const auto end = address.find_first_of("?#");
  const std::string path = address.substr(0, end);
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::string known_weights(const BackboneConfig& backbone) {
  static const std::string kBase = "https://download.mindspore.cn/toolkits/mindcv/";
  static const std::map<std::string, std::string> kFiles = {
      {"det_resnet18", "resnet/resnet18-1e65cd21.ckpt"},
      {"det_resnet34", "resnet/resnet34-f297d27e.ckpt"},
      {"det_resnet50", "resnet/resnet50-e0733ab8.ckpt"},
      {"det_resnet101", "resnet/resnet101-689c5e77.ckpt"},
      {"det_resnet152", "resnet/resnet152-beb689d8.ckpt"},
      {"det_mobilenet_v3_large", "mobilenet/mobilenetv3/mobilenet_v3_large_100-6f5bf961.ckpt"},
      {"det_mobilenet_v3_small", "mobilenet/mobilenetv3/mobilenet_v3_small_100-c884b105.ckpt"},
  };
  std::string name = backbone.name;
  if (name == "det_mobilenet_v3") {
    if (backbone.alpha != 1) return "";
    name += "_" + backbone.architecture;
  }
  const auto found = kFiles.find(name);
  return found == kFiles.end() ? "" : kBase + found->second;
}

fs::path weights_folder() {
  if (const auto cache = env("LOCKSTEP_CACHE")) return fs::path(*cache) / "weights";
  if (const auto cache = env("XDG_CACHE_HOME")) return fs::path(*cache) / "lockstep" / "weights";
  return fs::path(env_or("HOME", ".")) / ".cache" / "lockstep" / "weights";
}

fs::path weights_path(const std::string& given) {
  if (!is_address(given)) return given;
  const fs::path file = last_component(given);
  fs::path first = weights_folder() / file;
  std::vector<fs::path> places = {first};
  for (const char* ending : {".safetensors", ".pth"}) {
    places.push_back(fs::path(first).replace_extension(ending));
  }
  places.push_back(fs::path(env_or("HOME", ".")) / ".mindspore" / "models" / file);
  for (const auto& place : places) {
    std::error_code ignored;
    if (fs::is_regular_file(place, ignored)) return place;
  }
  return first;
}

namespace {

bool is_here(const std::string& given) {
  std::error_code ignored;
  return fs::exists(weights_path(given), ignored);
}

/// `why` in brackets, if known.
std::string not_here(const std::string& given, const std::string& why) {
  if (!is_address(given)) return fmt::format("the weights {} are not there", given);
  return fmt::format("the weights {} are not here{}: download that file and put it at {}", given,
                     why.empty() ? "" : " (" + why + ")", weights_path(given).string());
}

}  // namespace

std::vector<MissingWeights> find_missing(const Config& config) {
  std::vector<MissingWeights> all;
  const auto look = [&](const char* key, const std::string& given, bool is_needed) {
    if (given.empty() || is_here(given)) return;
    all.push_back({key, given, is_address(given), is_needed});
  };
  look("model.backbone.pretrained", config.model.backbone.pretrained, false);
  look("model.pretrained", config.model.pretrained, false);
  if (const auto* distillation = std::get_if<DistillationConfig>(&config.loss)) {
    look("loss.teacher.pretrained", distillation->teacher.pretrained, true);
  }
  return all;
}

std::string describe(const MissingWeights& missing, const std::string& why) {
  const std::string line = fmt::format("{}: {}", missing.key, not_here(missing.given, why));
  return missing.is_needed ? line
                           : fmt::format("{}; -o {}=False starts without", line, missing.key);
}

std::vector<std::string> missing_weights(const Config& config) {
  std::vector<std::string> lines;
  for (const auto& one : find_missing(config)) {
    if (one.is_address) {
      lines.push_back(fmt::format("{}: the weights {} are not here: a run downloads them to {}",
                                  one.key, one.given, weights_path(one.given).string()));
    } else {
      lines.push_back(one.key + ": " + not_here(one.given, ""));
    }
  }
  return lines;
}

fs::path require_weights(const std::string& given) {
  if (!is_here(given)) throw Error(ErrorCode::kNotFound, not_here(given, ""));
  return weights_path(given);
}

namespace {

constexpr const char* kClassesFile = "classes.txt";

/// Without the ends of lines that Windows writes, and without empty lines at the end.
std::vector<std::string> plain_lines(std::vector<std::string> lines) {
  for (auto& line : lines) {
    if (line.ends_with('\r')) line.pop_back();
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::vector<std::string> read_class_names(const fs::path& path) {
  return plain_lines(split(read_file(path, int64_t{1} << 28), '\n'));
}

/// The first name with a line's end in it.
std::optional<std::string> name_of_two_lines(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    if (name.find('\n') != std::string::npos) return name;
  }
  return std::nullopt;
}

/// What DIR/classes.txt has to do with a run.
enum class ClassesFile : uint8_t { kUnused, kMissing, kSame, kDiffers };

ClassesFile compare_names(const fs::path& dir, const std::vector<std::string>& names) {
  if (names.empty() || name_of_two_lines(names)) return ClassesFile::kUnused;
  if (!fs::is_regular_file(dir / kClassesFile)) return ClassesFile::kMissing;
  const bool same = read_class_names(dir / kClassesFile) == plain_lines(names);
  return same ? ClassesFile::kSame : ClassesFile::kDiffers;
}

}  // namespace

void check_class_names(const fs::path& dir, const std::vector<std::string>& names) {
  if (compare_names(dir, names) != ClassesFile::kDiffers || fs::exists(dir / "args.yaml")) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("train.ckpt_save_dir {}: a run writes the names of its classes to {}, "
                          "which has other lines and is of no run; move it away, or choose another "
                          "folder",
                          dir.string(), (dir / kClassesFile).string()));
}

std::string unwritten_names_note(const fs::path& dir, const std::vector<std::string>& names) {
  const auto name = name_of_two_lines(names);
  if (!name) return "";
  return fmt::format(
      "{} is not written: the name of class '{}' has a line's end; predict takes the names from "
      "the training data, or numbers where these are not",
      (without_slash(dir) / kClassesFile).string(), without_controls(*name));
}

fs::path write_class_names(const fs::path& dir, const std::vector<std::string>& names) {
  const auto found = compare_names(dir, names);
  if (found == ClassesFile::kUnused || found == ClassesFile::kSame) return {};
  const fs::path path = dir / kClassesFile;
  fs::path moved;
  if (found == ClassesFile::kDiffers) {
    moved = numbered_path(path);
    std::error_code error;
    fs::rename(path, moved, error);
    if (error) {
      throw Error(ErrorCode::kIo,
                  fmt::format("move {} to {}: {}", path.string(), moved.string(), error.message()));
    }
  }
  write_file_atomically(path, fmt::format("{}\n", fmt::join(names, "\n")));
  return moved;
}

std::vector<std::string> trained_class_names(const fs::path& weights) {
  if (fs::is_regular_file(weights / kClassesFile)) return read_class_names(weights / kClassesFile);
  fs::path folder = without_slash(weights).parent_path();
  const fs::path name = weights.filename();
  const bool in_checkpoint = name == "model.safetensors" || name == "ema.safetensors";
  if (in_checkpoint && !fs::exists(folder / kClassesFile)) folder = folder.parent_path();
  if (!fs::is_regular_file(folder / kClassesFile)) return {};
  return read_class_names(folder / kClassesFile);
}

fs::path best_weights(const TrainSection& train) {
  for (const auto& name : {"best." + train.weights_format, std::string("best.ckpt"),
                           std::string("best.safetensors"), std::string("best")}) {
    if (fs::exists(train.ckpt_save_dir / name)) return train.ckpt_save_dir / name;
  }
  return {};
}

}  // namespace lockstep::inline internal
