// lockstep convert: data sets' annotations as MindOCR's label files. Links no libtorch.

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/data/fetch/transfer_bar.h"
#include "lockstep/ocr/convert/convert.h"

namespace {

using namespace lockstep;

void add_options(CLI::App& app, ocr::ConvertOptions& options) {
  app.add_option("-d,--dataset_name", options.dataset_name, "ic15, totaltext, td500 and others")
      ->capture_default_str();
  app.add_option("-t,--task", options.task, "det, rec or rec_lmdb")->capture_default_str();
  app.add_option("-i,--image_dir", options.image_dir, "Folder of the pictures")
      ->capture_default_str();
  app.add_option("-l,--label_dir", options.label_dir, "Folder of the labels, or their one file");
  app.add_option("-o,--output_path", options.output_path,
                 "Without it, beside the labels: {last of image_dir}_{task}_gt.txt");
  app.add_option("--path_mode", options.path_mode, "Pictures' names alone (relative), or abs")
      ->capture_default_str();
  app.add_option("--split", options.split, "For sets that have several in one file");
}

int body(int argc, char** argv) {
  CLI::App app("Writes MindOCR's label files for published data sets", "lockstep convert");
  ocr::ConvertOptions options;
  add_options(app, options);
  try {
    app.parse(reversed_arguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    throw Error(ErrorCode::kInvalidArgument,
                std::string(error.what()) + " (see lockstep convert --help)");
  }
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
