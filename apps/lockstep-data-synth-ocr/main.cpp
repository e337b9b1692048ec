// lockstep data synth-ocr: draws pictures with text. It is a separate program, so that users with
// other data need not build the drawing code.

#include <fmt/format.h>

#include <cstdint>

#include "lockstep/base/options.h"
#include "lockstep/data/fetch/transfer_bar.h"
#include "lockstep/error.h"
#include "lockstep/ocr/synth/write_synth.h"
#include "lockstep/world/cores.h"

namespace {

using namespace lockstep;

constexpr int64_t kMaxPictures = 1'000'000'000;

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

struct Request : ocr::SynthOptions {
  Request() { threads = 0; }
  bool help = false;
};

OptionGroup<Request> synth_options() {
  using R = Request;
  using Text = const std::string&;
  constexpr auto kValue = OptionKind::kValue;
  return {"",
          {{"det", 0, kValue, "N", "scenes for text detection (default {})",
            set_whole<&R::det, 0, kMaxPictures>, shows<&R::det>},
           {"rec", 0, kValue, "N", "words for text recognition (default {})",
            set_whole<&R::rec, 0, kMaxPictures>, shows<&R::rec>},
           {"test_share", 0, kValue, "X", "as many more for testing (0 to 1; default {})",
            [](R& request, Text value, Text what) {
              request.test_share = parse_real(value, 0, 1, what);
            },
            shows<&R::test_share>},
           {"output", 'o', kValue, "DIR", "folder to make (default {})", set_text<&R::output>,
            shows<&R::output>},
           {"dir", 0, kValue, "DIR", "", set_text<&R::output>},
           {"seed", 0, kValue, "N", "equal seeds, equal pictures (default {})",
            set_whole<&R::seed, 0, INT64_MAX>, shows<&R::seed>},
           {"size", 0, kValue, "WxH", "pixels of a scene, WIDTHxHEIGHT (default {})",
            [](R& request, Text value, Text) { request.scene_size = parse_size(value); },
            [](const R& request) {
              const auto& size = request.scene_size;
              return std::vector{fmt::format("{}x{}", size.width, size.height)};
            }},
           {"difficulty", 0, kValue, "NAME", "easy, normal or hard (default {})",
            set_text<&R::difficulty>, shows<&R::difficulty>},
           {"fonts", 0, kValue, "DIR", "folder of fonts; without it, the system's",
            set_text<&R::fonts>},
           {"threads", 0, kValue, "N", "0: one a core (default {})",
            set_whole<&R::threads, 0, 1024>, shows<&R::threads>},
           help_option<R>()}};
}

int body(int argc, char** argv) {
  Request options;
  read_only_options({argv + 1, argv + argc}, synth_options().options, "lockstep data synth-ocr",
                    options);
  if (options.help) {
    return print_help({{{"lockstep data synth-ocr [OPTIONS]", ""}},
                       "Draws pictures with text, and MindOCR's label files for them.",
                       {help_group(synth_options())},
                       ""});
  }
  if (options.threads == 0) options.threads = usable_cores();
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
