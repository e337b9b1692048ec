#include "lockstep/train/program/command_line.h"

#include "lockstep/base/help_text.h"
#include "lockstep/base/log.h"
#include "lockstep/base/options.h"
#include "lockstep/error.h"
#include "lockstep/predict/run_prediction.h"
#include "lockstep/train/program/plugin.h"

namespace lockstep::inline internal {
namespace {

struct PredictRequest : PredictOptions {
  std::vector<std::string> plugins;
  bool help = false;
};

/// Of a network: its YAML file, its weights, or both.
template <auto kMember>
constexpr auto add_file =
    [](PredictRequest& request, const std::string& value, const std::string& what) {
      if ((request.*kMember).size() == 2) {
        throw Error(ErrorCode::kInvalidArgument,
                    what + " takes a YAML file and a file of weights, and no third: " + value);
      }
      (request.*kMember).push_back(value);
    };

const OptionGroup<PredictRequest>& predict_options() {
  using R = PredictRequest;
  using Text = const std::string&;
  constexpr auto kValue = OptionKind::kValue;
  constexpr auto kWords = OptionKind::kWords;
  static const OptionGroup<R> kOptions = {
      "",
      {{"config", 'c', kValue, "FILE", "YAML file of a classifier, a detector or a recogniser",
        set_path<&R::config>},
       {"input", 'i', kValue, "PATH",
        "a picture, or a folder of JPEG, PNG, BMP or WebP files; default: predict.dataset.data_dir",
        set_path<&R::input>},
       {"det", 0, kWords, "FILE",
        "the detector's YAML file, weights (.ckpt, .pth, .safetensors), or both",
        add_file<&R::det>},
       {"rec", 0, kWords, "FILE", "the same for the recogniser, which reads the regions found",
        add_file<&R::rec>},
       {"cls", 0, kWords, "FILE", "the same for a classifier, which works alone",
        add_file<&R::cls>},
       {"output", 0, kValue, "DIR",
        "folder for results and pictures; default: predict.output_save_dir, else output",
        set_path<&R::output>},
       {"drop_score", 0, kValue, "X",
        "least confidence of a text, with both networks (0 to 1; default {})",
        [](R& request, Text value, Text what) {
          request.drop_score = parse_real(value, 0, 1, what);
        },
        shows<&R::drop_score>},
       {"no_draw", 0, OptionKind::kFlag, "", "write no pictures, the lines alone",
        [](R& request, Text, Text) { request.draw = false; }},
       {"opt", 'o', kWords, "key.sub=value ...", "values that replace those of the YAML files",
        add_text<&R::overrides>},
       plugin_option<R>(),
       help_option<R>()}};
  return kOptions;
}

}  // namespace

int run_predict_command(const std::vector<std::string>& words, const std::string& verb) {
  PredictRequest request;
  read_only_options(words, predict_options().options, verb, request);
  if (request.help) {
    return print_help({{{verb + " [OPTIONS]", ""}},
                       "Classify pictures, or find and read text in them.",
                       {help_group(predict_options())},
                       ""});
  }
  load_plugins(request.plugins);
  const auto plan = plan_prediction(request);
  const auto world = World::join();
  if (world.size > 1) set_log_name("rank " + std::to_string(world.rank));
  return run_prediction(plan, world);
}

}  // namespace lockstep::inline internal
