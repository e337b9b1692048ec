// lockstep convert: data sets' annotations as MindOCR's label files. Links no libtorch.

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/command_line.h"
#include "lockstep/base/arguments.h"
#include "lockstep/base/log.h"
#include "lockstep/data/fetch/transfer_bar.h"
#include "lockstep/error.h"
#include "lockstep/ocr/convert/convert.h"

namespace {

using namespace lockstep;

void add_options(CLI::App& app, ocr::ConvertOptions& options) {
  app.add_option("-d,--dataset_name", options.dataset_name, "ic15, totaltext, td500 and others")
      ->capture_default_str();
  app.add_option("-t,--task", options.task, "det, rec or rec_lmdb")->capture_default_str();
  app.add_option("-i,--image_dir", options.image_dir, "folder of the pictures")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("-l,--label_dir", options.label_dir, "folder of the labels, or their one file")
      ->type_name("PATH");
  app.add_option("-o,--output_path", options.output_path,
                 "without it, beside the labels: {last of image_dir}_{task}_gt.txt")
      ->type_name("FILE");
  app.add_option("--path_mode", options.path_mode, "pictures' names alone (relative), or abs")
      ->capture_default_str();
  app.add_option("--split", options.split, "for sets that have several in one file");
}

int body(int argc, char** argv) {
  CLI::App app("Writes MindOCR's label files for published data sets.", "lockstep convert");
  ocr::ConvertOptions options;
  add_options(app, options);
  if (const auto status = app::parse_command_line(app, reversed_arguments(argc, argv)))
    return *status;
  ocr::ConvertResult result;
  {
    TransferBar bar("convert", 2, format_count);
    result =
        ocr::convert_labels(options, [&](int64_t done, int64_t total) { bar.update(done, total); });
  }
  for (const std::string& note : result.notes) log_warn(note);
  fmt::print("Conversion complete.\nResult saved in {}\n", result.output);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("lockstep convert", body, argc, argv);
}
