#include "lockstep/ocr/synth/write_synth.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <thread>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "lockstep/ocr/synth/fonts.h"
#include "lockstep/ocr/synth/scene.h"
#include "lockstep/ocr/synth/style.h"

namespace lockstep::ocr {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostImages = 100'000'000;

/// One folder of pictures with its label file.
struct Part {
  std::string folder;      // "det/train"
  std::string label_file;  // "det_gt.txt"
  bool scenes = true;
  uint32_t stream = 0;
  std::vector<std::string> lines;
};

void check_options(const SynthOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, what);
  };
  for (const auto& [name, count] : {std::pair{"--det", options.det}, {"--rec", options.rec}}) {
    if (count < 0 || count > kMostImages) {
      refuse(fmt::format("{} {}: 0 to {} can be made", name, count, kMostImages));
    }
  }
  if (options.det + options.rec == 0) refuse("nothing to make: give --det N, --rec N or both");
  if (!(options.test_share >= 0 && options.test_share <= 1)) {
    refuse(fmt::format("--test_share {}: it must lie in [0, 1]", options.test_share));
  }
  const cv::Size size = options.scene_size;
  if (std::min(size.width, size.height) < 160 || std::max(size.width, size.height) > 8192) {
    refuse(fmt::format("scenes of {}x{}: 160 to 8192 pixels a side", size.width, size.height));
  }
}

std::vector<Part> plan_parts(const SynthOptions& options) {
  std::vector<Part> parts;
  for (const bool scenes : {true, false}) {
    const int64_t train = scenes ? options.det : options.rec;
    if (train == 0) continue;
    const std::string kind = scenes ? "det" : "rec";
    const auto share =
        static_cast<int64_t>(std::ceil(options.test_share * static_cast<double>(train)));
    for (const bool test : {false, true}) {
      const int64_t count = test ? share : train;
      if (count == 0) continue;
      const uint32_t stream = (scenes ? 0U : 2U) + (test ? 1U : 0U);
      parts.push_back({kind + (test ? "/test" : "/train"), kind + "_gt.txt", scenes, stream,
                       std::vector<std::string>(static_cast<size_t>(count))});
    }
  }
  return parts;
}

/// The inputs of the pictures, as JSON.
std::string describe(const SynthOptions& options, const std::vector<FontFile>& fonts) {
  std::vector<std::string> names;
  for (const FontFile& font : fonts) {
    names.push_back(fmt::format("\"{}:{}\"", fs::path(font.path).filename().string(), font.face));
  }
  return fmt::format(
      "{{\"made by\": \"lockstep data synth-ocr\", \"format\": 1, \"det\": {}, \"rec\": {}, "
      "\"test_share\": {}, \"seed\": {}, \"size\": [{}, {}], \"difficulty\": \"{}\",\n"
      " \"fonts\": [{}]}}\n",
      options.det, options.rec, options.test_share, options.seed, options.scene_size.width,
      options.scene_size.height, options.difficulty, fmt::join(names, ", "));
}

/// Not durable file by file: their folder has no name yet.
void write_plain(const fs::path& path, const void* data, size_t size) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) throw io_error("open " + path.string());
  write_all(fd.get(), data, size, path.string());
}

std::string scene_line(const std::string& name, const std::vector<SceneWord>& words) {
  std::string line = name + "\t[";
  for (const SceneWord& word : words) {
    const Corners& at = word.corners;
    line += fmt::format(
        "{}{{\"transcription\": \"{}\", \"points\": [[{:.1f}, {:.1f}], [{:.1f}, {:.1f}], "
        "[{:.1f}, {:.1f}], [{:.1f}, {:.1f}]]}}",
        &word == words.data() ? "" : ", ", word.text, at[0].x, at[0].y, at[1].x, at[1].y, at[2].x,
        at[2].y, at[3].x, at[3].y);
  }
  return line + "]\n";
}

/// Draws, encodes and writes one picture; returns its line of the label file.
std::string make_picture(const SynthOptions& options, const SynthStyle& style, TextPen& pen,
                         const Part& part, size_t index, const fs::path& root) {
  Dice dice(options.seed, part.stream, index);
  const std::string name = fmt::format("{}_{:06}.jpg", part.scenes ? "scene" : "word", index + 1);
  cv::Mat image;
  std::string line;
  if (part.scenes) {
    const SynthScene scene = draw_scene(dice, pen, options.scene_size, style);
    image = scene.image;
    line = scene_line(name, scene.words);
  } else {
    const SynthWord word = draw_word(dice, pen, style);
    image = word.image;
    line = fmt::format("{}\t{}\n", name, word.text);
  }
  const std::vector<uint8_t> bytes = encode_jpeg(dice, image, style);
  write_plain(root / part.folder / "images" / name, bytes.data(), bytes.size());
  return line;
}

/// Distributes pictures to threads; the first failure stops all, and run() throws it.
class Workshop {
 public:
  Workshop(const SynthOptions& options, std::vector<FontFile> fonts, std::vector<Part>& parts,
           fs::path root, const SynthProgress& progress)
      : options_(options),
        style_(synth_style(options.difficulty)),
        fonts_(std::move(fonts)),
        parts_(parts),
        root_(std::move(root)),
        progress_(progress) {
    for (const Part& part : parts) total_ += part.lines.size();
  }

  void run(size_t threads) {
    std::vector<std::thread> others;
    for (size_t i = 1; i < std::min(threads, total_); ++i) {
      others.push_back(start_thread_with_signals_blocked([this] { work(); }));
    }
    work();
    for (std::thread& other : others) other.join();
    const MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work() {
    try {
      TextPen pen(fonts_);
      for (size_t item = next_++; item < total_; item = next_++) {
        make(item, pen);
        const MutexLock lock(mutex_);
        ++done_;
        if (progress_) progress_(done_, static_cast<int64_t>(total_));
      }
    } catch (...) {
      next_ = total_;
      const MutexLock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  void make(size_t item, TextPen& pen) {
    for (Part& part : parts_) {
      if (item < part.lines.size()) {
        part.lines[item] = make_picture(options_, style_, pen, part, item, root_);
        return;
      }
      item -= part.lines.size();
    }
  }

  const SynthOptions& options_;
  const SynthStyle style_;
  const std::vector<FontFile> fonts_;
  std::vector<Part>& parts_;
  const fs::path root_;
  const SynthProgress& progress_;
  size_t total_ = 0;
  std::atomic<size_t> next_{0};
  Mutex mutex_;
  int64_t done_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::exception_ptr failure_ LOCKSTEP_GUARDED_BY(mutex_);
};

/// Disables OpenCV's own threads, which would compete with ours.
class OpenCvAlone {
 public:
  OpenCvAlone() : before_(cv::getNumThreads()) { cv::setNumThreads(1); }
  ~OpenCvAlone() { cv::setNumThreads(before_); }
  OpenCvAlone(const OpenCvAlone&) = delete;
  OpenCvAlone& operator=(const OpenCvAlone&) = delete;

 private:
  int before_;
};

void fill(const fs::path& root, const SynthOptions& options, const std::vector<FontFile>& fonts,
          std::vector<Part>& parts, const SynthProgress& progress) {
  for (const Part& part : parts) make_folder(root / part.folder / "images");
  const OpenCvAlone alone;
  Workshop(options, fonts, parts, root, progress).run(static_cast<size_t>(options.threads));
  for (const Part& part : parts) {
    write_file_atomically(root / part.folder / part.label_file,
                          fmt::format("{}", fmt::join(part.lines, "")));
  }
  write_file_atomically(root / "synth.json", describe(options, fonts));
}

/// Whether `output` holds the pictures of `wanted`. Errors: kInvalidArgument for other contents.
bool already_there(const fs::path& output, const std::string& wanted) {
  std::error_code ignored;
  if (!fs::exists(output, ignored) || fs::is_empty(output, ignored)) return false;
  if (fs::exists(output / "synth.json", ignored) && read_file(output / "synth.json") == wanted) {
    return true;
  }
  throw Error(ErrorCode::kInvalidArgument,
              output.string() +
                  " holds other files, or pictures made by other options or fonts; "
                  "remove it or choose another --output");
}

}  // namespace

SynthResult write_synth(const SynthOptions& options, const SynthProgress& progress) {
  check_options(options);
  (void)synth_style(options.difficulty);
  const std::vector<FontFile> fonts = find_fonts(options.fonts);
  std::vector<Part> parts = plan_parts(options);
  SynthResult result;
  for (const Part& part : parts) result.images += static_cast<int64_t>(part.lines.size());
  result.found = already_there(options.output, describe(options, fonts));
  if (result.found) return result;
  const fs::path output = absolute_folder(options.output, "the folder of the pictures");
  try {
    fill_folder(output, [&](const fs::path& root) {
      fill(root, options, fonts, parts, progress);
      fs::remove(output);  // an empty folder
    });
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCode::kIo, fmt::format("{}: {}", options.output.string(), error.what()));
  }
  return result;
}

}  // namespace lockstep::ocr
