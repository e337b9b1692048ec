// lockstep export: a trained network as a file for other programs.

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/base/options.h"
#include "lockstep/base/quick_end.h"
#include "lockstep/checkpoint/mindspore_file.h"
#include "lockstep/checkpoint_folder.h"
#include "lockstep/error.h"
#include "lockstep/onnx/save_onnx.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/picture_data.h"
#include "lockstep/train/setup.h"
#include "lockstep/weights.h"

namespace {

using namespace lockstep;
namespace fs = std::filesystem;

struct Request {
  std::string config;
  std::string weights;
  std::string output;
  int64_t size = 0;
  std::vector<std::string> overrides;
  bool help = false;
};

OptionGroup<Request> export_options() {
  using R = Request;
  constexpr auto kValue = OptionKind::kValue;
  return {
      "",
      {{"config", 'c', kValue, "FILE", "YAML file of the network (needed)", set_text<&R::config>},
       {"output", 0, kValue, "FILE",
        "file to write: .onnx; .safetensors or .ckpt, the weights alone (needed)",
        set_text<&R::output>},
       {"weights", 'w', kValue, "PATH",
        "a file or a checkpoint; default: eval.ckpt_load_path, else the best of "
        "train.ckpt_save_dir",
        set_text<&R::weights>},
       {"size", 0, kValue, "N",
        "sides of the pictures, for .onnx; default: those of the transforms of eval",
        set_whole<&R::size, 1, 4096>},
       {"opt", 'o', OptionKind::kWords, "key.sub=value ...",
        "values that replace those of the YAML file",
        [](R& request, const std::string& value, const std::string&) {
          request.overrides.push_back(value);
        }},
       help_option<R>()}};
}

[[noreturn]] void refuse_export(const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, why);
}

enum class ExportFormat { kOnnx, kSafetensors, kCkpt };

ExportFormat format_of(const fs::path& output) {
  const auto ending = output.extension();
  if (ending == ".onnx") return ExportFormat::kOnnx;
  if (ending == ".safetensors") return ExportFormat::kSafetensors;
  if (ending == ".ckpt") return ExportFormat::kCkpt;
  refuse_export(fmt::format("--output must end in .onnx, .safetensors or .ckpt, unlike '{}'",
                            output.filename().string()));
}

fs::path weights_to_export(const Config& config, const std::string& given) {
  if (!given.empty()) return given;
  if (config.eval && !config.eval->ckpt_load_path.empty()) return config.eval->ckpt_load_path;
  const auto best = best_weights(config.train);
  return best.empty() ? find_checkpoint(config.train.ckpt_save_dir) : best;
}

/// Channels, rows, columns.
std::vector<int64_t> picture_sizes(const Config& config, int64_t size) {
  if (size > 0) return {3, size, size};
  const DatasetConfig& dataset = config.eval ? config.eval->dataset : config.train.dataset;
  const bool own = dataset.own || config.train.dataset.own;
  if (own || !dataset.pipeline.empty()) {  // a network for text takes any size
    refuse_export("--size is needed: the transforms do not fix the size of the pictures");
  }
  if (!dataset.has_picture_files()) {
    DatasetConfig as_trained = dataset;
    as_trained.channels = config.train.dataset.channels;
    const ImageShape stored = small_images_of(config.train.dataset).shape;
    const ImageShape shape = make_image_transform(as_trained, stored, 0).output();
    return {shape.channels, shape.height, shape.width};
  }
  if (const auto output = make_picture_pipeline(dataset, 0).output()) {
    return {3, output->height, output->width};
  }
  refuse_export("--size is needed: the transforms leave pictures in different sizes");
}

int run(int argc, char** argv) {
  Request request;
  read_only_options({argv + 1, argv + argc}, export_options().options, "lockstep export", request);
  if (request.help) {
    return print_help({{{"lockstep export -c FILE --output FILE [OPTIONS]", ""}},
                       "Writes a trained network as a file for other programs.",
                       {help_group(export_options())},
                       ""});
  }
  if (request.config.empty()) refuse_export("-c, --config FILE is needed");
  if (request.output.empty()) refuse_export("--output FILE is needed");
  const ExportFormat format = format_of(request.output);
  const Config config = load_config(request.config, request.overrides);
  const fs::path weights = weights_in(weights_to_export(config, request.weights), config.train.ema);
  const auto model = make_model(without_pretrained(config.model), config.system.seed);
  load_weights(weights, *model);
  if (format == ExportFormat::kOnnx) {
    save_onnx(request.output, *model, picture_sizes(config, request.size));
  } else if (format == ExportFormat::kCkpt) {
    save_ckpt(request.output, *model);
  } else {
    save_tensors(request.output, module_tensors(*model));
  }
  fmt::print("{}: {} with {} parameters, from {}\n", request.output, config.model.name(),
             count_parameters(*model), weights.string());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::end_without_teardown();
  return lockstep::run_main("lockstep export", run, argc, argv);
}
