// lockstep data synth-ocr: draws pictures with text. It is a separate program, so that users with
// other data need not build the drawing code.

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/command_line.h"
#include "lockstep/base/arguments.h"
#include "lockstep/data/fetch/transfer_bar.h"
#include "lockstep/error.h"
#include "lockstep/ocr/synth/write_synth.h"

namespace {

using namespace lockstep;

/// "640x480". Errors: kInvalidArgument.
cv::Size parse_size(const std::string& text) {
  int width = 0, height = 0, end = 0;
  if (std::sscanf(text.c_str(), "%5dx%5d%n", &width, &height, &end) == 2 &&
      end == static_cast<int>(text.size())) {
    return {width, height};
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("--size {}: must be WIDTHxHEIGHT, such as 640x640", text));
}

void add_options(CLI::App& app, ocr::SynthOptions& options, std::string& size) {
  app.add_option("--det", options.det, "scenes for text detection")->capture_default_str();
  app.add_option("--rec", options.rec, "words for text recognition")->capture_default_str();
  app.add_option("--test_share,--test-share", options.test_share, "as many more for testing")
      ->capture_default_str();
  app.add_option("-o,--output,--dir", options.output, "folder to make")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "equal seeds, equal pictures")->capture_default_str();
  app.add_option("--size", size, "pixels of a scene, WIDTHxHEIGHT")
      ->type_name("WxH")
      ->capture_default_str();
  app.add_option("--difficulty", options.difficulty, "easy, normal or hard")->capture_default_str();
  app.add_option("--fonts", options.fonts, "folder of fonts; without it, the system's")
      ->type_name("DIR");
  app.add_option("--threads", options.threads, "0: one a core")->capture_default_str();
}

int body(int argc, char** argv) {
  CLI::App app("Draws pictures with text, and MindOCR's label files for them.",
               "lockstep data synth-ocr");
  ocr::SynthOptions options;
  std::string size = "640x640";
  add_options(app, options, size);
  if (const auto status = app::parse_command_line(app, reversed_arguments(argc, argv)))
    return *status;
  options.scene_size = parse_size(size);
  ocr::SynthResult result;
  {
    TransferBar bar("synth-ocr", 2, format_count);
    result = ocr::write_synth(options, [&](int64_t done, int64_t all) { bar.update(done, all); });
  }
  fmt::print("{}: {} pictures ({})\n", options.output.string(), result.images,
             result.found ? "already there" : "drawn");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("lockstep data synth-ocr", body, argc, argv);
}
