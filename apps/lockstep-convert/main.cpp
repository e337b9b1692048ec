// lockstep convert: data sets' annotations as MindOCR's label files. Links no libtorch.

#include <fmt/format.h>

#include "lockstep/base/log.h"
#include "lockstep/base/options.h"
#include "lockstep/data/fetch/transfer_bar.h"
#include "lockstep/error.h"
#include "lockstep/ocr/convert/convert.h"

namespace {

using namespace lockstep;

struct Request : ocr::ConvertOptions {
  bool help = false;
};

OptionGroup<Request> convert_options() {
  using R = Request;
  constexpr auto kValue = OptionKind::kValue;
  return {
      "",
      {{"dataset_name", 'd', kValue, "NAME", "ic15, totaltext, td500 and others (default {})",
        set_text<&R::dataset_name>, shows<&R::dataset_name>},
       {"task", 't', kValue, "NAME", "det, rec or rec_lmdb (default {})", set_text<&R::task>,
        shows<&R::task>},
       {"image_dir", 'i', kValue, "DIR", "folder of the pictures (default {})",
        set_text<&R::image_dir>, shows<&R::image_dir>},
       {"label_dir", 'l', kValue, "PATH", "folder of the labels, or their one file",
        set_text<&R::label_dir>},
       {"output_path", 'o', kValue, "FILE",
        "without it, beside the labels: {last of image_dir}_{task}_gt.txt",
        set_text<&R::output_path>},
       {"path_mode", 0, kValue, "NAME", "pictures' names alone (relative), or abs (default {})",
        set_text<&R::path_mode>, shows<&R::path_mode>},
       {"split", 0, kValue, "NAME", "for sets that have several in one file", set_text<&R::split>},
       help_option<R>()}};
}

int body(int argc, char** argv) {
  Request options;
  read_only_options({argv + 1, argv + argc}, convert_options().options, "lockstep convert",
                    options);
  if (options.help) {
    return print_help({{{"lockstep convert [OPTIONS]", ""}},
                       "Writes MindOCR's label files for published data sets.",
                       {help_group(convert_options())},
                       ""});
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
