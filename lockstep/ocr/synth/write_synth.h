#pragma once
// Generates a data set of pictures, with MindOCR's label files.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <opencv2/core.hpp>
#include <string>

namespace lockstep::ocr {

struct SynthOptions {
  std::filesystem::path output = "data/synth-ocr";
  int64_t det = 0;          ///< Scenes for training.
  int64_t rec = 0;          ///< Words for training.
  double test_share = 0.1;  ///< Additional share for tests, at least one; in [0, 1].
  uint64_t seed = 0;
  cv::Size scene_size{640, 640};
  std::string difficulty = "normal";
  std::filesystem::path fonts;  ///< A folder of fonts; empty: those of the system.
  int threads = 1;              ///< That draw.
};

struct SynthResult {
  int64_t images = 0;
  bool found = false;  ///< It existed already, generated with equal options.
};

/// Called with the number of finished pictures and the total, by one thread at a time.
using SynthProgress = std::function<void(int64_t done, int64_t total)>;

/// Writes into `output`:
///   {det,rec}/{train,test}/images/N.jpg, {det,rec}/{train,test}/{det,rec}_gt.txt, synth.json
/// Label files are MindOCR's; their paths are relative to the images' folder. A picture is a
/// function of the seed, its kind, part and number, the options and the fonts. Neither the number
/// of threads nor any count changes it. Training and test pictures are disjoint. `output` appears
/// whole: everything is written into OUTPUT.tmp, which is renamed. An output of equal options is
/// left unchanged.
/// Cost: a scene of 640 x 640 about 25 ms of a core, a word 1 ms.
/// Errors: kInvalidArgument (a count, size or share; `output` holds something else), kNotFound (no
/// font), kIo (disk full: nothing is left).
SynthResult write_synth(const SynthOptions& options, const SynthProgress& progress = {});

}  // namespace lockstep::ocr
