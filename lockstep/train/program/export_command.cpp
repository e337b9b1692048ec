#include "lockstep/train/program/command_line.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "lockstep/base/file.h"
#include "lockstep/base/help_text.h"
#include "lockstep/base/options.h"
#include "lockstep/batch.h"
#include "lockstep/checkpoint/mindspore_file.h"
#include "lockstep/checkpoint_folder.h"
#include "lockstep/error.h"
#include "lockstep/onnx/save_onnx.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/own_data.h"
#include "lockstep/train/picture_data.h"
#include "lockstep/train/program/plugin.h"
#include "lockstep/train/setup.h"
#include "lockstep/weights.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

struct ExportRequest {
  std::string config;
  std::string weights;
  std::string output;
  int64_t size = 0;
  std::vector<std::string> overrides, plugins;
  bool help = false;
};

const OptionGroup<ExportRequest>& export_options() {
  using R = ExportRequest;
  constexpr auto kValue = OptionKind::kValue;
  static const OptionGroup<R> kOptions = {
      "",
      {{"config", 'c', kValue, "FILE", "YAML file of the network (needed)", set_text<&R::config>},
       {"output", 0, kValue, "FILE",
        "file to write: .onnx; .safetensors or .ckpt, the weights alone (needed)",
        set_text<&R::output>},
       {"weights", 'w', kValue, "PATH",
        "a file or a checkpoint; default: eval.ckpt_load_path, else the best of "
        "train.ckpt_save_dir",
        set_path<&R::weights>},
       {"size", 0, kValue, "N",
        "sides of the pictures, for .onnx; default: those of the transforms of eval, or of the "
        "first sample of a data set of one's own",
        set_whole<&R::size, 1, 4096>},
       {"opt", 'o', OptionKind::kWords, "key.sub=value ...",
        "values that replace those of the YAML file", add_text<&R::overrides>},
       plugin_option<R>(),
       help_option<R>()}};
  return kOptions;
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

/// The sizes of the first sample of a registered data set.
std::vector<int64_t> sample_sizes(const Config& config) {
  // Inputs of training may differ. A recipe may have no data for evaluation: see check_own_data().
  const bool evaluates = config.system.val_while_train || !config.model.task;
  const bool of_train = config.train.dataset.own.has_value() &&
                        !(evaluates && config.eval && config.eval->dataset.own);
  constexpr std::array<int64_t, 1> kFirst = {0};
  const Batch batch = make_own_dataset(config, of_train)->make({1, kFirst, 1});
  if (!batch.more_inputs.empty()) {
    refuse_export(
        fmt::format("a sample has {} inputs: an .onnx file here has one", batch.inputs().size()));
  }
  if (!batch.images_name.empty()) {
    refuse_export(
        fmt::format("a sample's input has the name '{}': that of an .onnx file here has none",
                    batch.images_name));
  }
  if (!batch.images.is_floating_point()) {
    refuse_export("a sample holds whole numbers: the input of an .onnx file here is float32");
  }
  return batch.images.sizes().slice(1).vec();
}

/// Of the pictures that a network was trained on.
int64_t input_channels(const DatasetConfig& train) {
  if (train.channels > 0) return train.channels;
  return train.has_small_images() ? small_images_of(train).shape.channels : 3;
}

/// Of an input without the batch: channels, rows and columns of pictures.
std::vector<int64_t> input_sizes(const Config& config, int64_t size) {
  const DatasetConfig& dataset = config.eval ? config.eval->dataset : config.train.dataset;
  const bool own = dataset.own || config.train.dataset.own;
  if (size > 0) return {own ? 3 : input_channels(config.train.dataset), size, size};
  if (own) return sample_sizes(config);
  if (!dataset.pipeline.empty()) {  // a network for text takes any size
    refuse_export("--size is needed: the transforms do not fix the size of the pictures");
  }
  if (!dataset.has_picture_files()) {
    DatasetConfig as_trained = dataset;
    as_trained.channels = config.train.dataset.channels;
    const ImageShape stored = small_images_of(config.train.dataset).shape;
    const ImageShape shape = output_shape(make_small_image_pipeline(as_trained, stored, 0));
    return {shape.channels, shape.height, shape.width};
  }
  if (const auto output = make_picture_pipeline(dataset, 0).output()) {
    return {3, output->height, output->width};
  }
  refuse_export("--size is needed: the transforms leave pictures in different sizes");
}

int export_network(const ExportRequest& request) {
  const ExportFormat format = format_of(request.output);
  check_output_file(request.output);
  load_plugins(request.plugins);
  const Config config = load_config(request.config, request.overrides);
  const fs::path weights = weights_in(weights_to_export(config, request.weights), config.train.ema);
  const auto model = make_model(without_pretrained(config.model), config.system.seed);
  load_weights(weights, *model);
  if (format == ExportFormat::kOnnx) {
    save_onnx(request.output, *model, input_sizes(config, request.size));
  } else if (format == ExportFormat::kCkpt) {
    save_ckpt(request.output, *model);
  } else {
    // As in checkpoints; transformers reads no file without this format.
    save_tensors(request.output, module_tensors(*model),
                 {{"format", "pt"}, {"model", config.model.name()}});
  }
  fmt::print("{}: {} with {} parameters, from {}\n", request.output, config.model.name(),
             count_parameters(*model), weights.string());
  return 0;
}

}  // namespace

int run_export_command(const std::vector<std::string>& words, const std::string& verb) {
  ExportRequest request;
  read_only_options(words, export_options().options, verb, request);
  if (request.help) {
    return print_help({{{verb + " -c FILE --output FILE [OPTIONS]", ""}},
                       "Writes a trained network as a file for other programs.",
                       {help_group(export_options())},
                       ""});
  }
  if (request.config.empty()) refuse_export("-c, --config FILE is needed");
  if (request.output.empty()) refuse_export("--output FILE is needed");
  return export_network(request);
}

}  // namespace lockstep::inline internal
