// lockstep data SET: gets a data set onto this machine. Links no libtorch.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "apps/command_line.h"
#include "apps/lockstep-data/images.h"
#include "apps/lockstep/verbs.h"
#include "lockstep/base/arguments.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/data/fetch/prepare.h"
#include "lockstep/error.h"

namespace {

using namespace lockstep;

const std::vector<std::string> kDataSets = {"cifar10", "images", "synth-ocr"};

void add_options(CLI::App& app, std::string& name, PrepareOptions& options) {
  app.add_option("SET", name,
                 "cifar10: CIFAR-10 in binary form; the existing files, else a download, else a "
                 "generated stand-in. synth-ocr: drawn pictures with text, see "
                 "lockstep data synth-ocr --help. images: a configuration for your own "
                 "pictures, see lockstep data images --help")
      ->required();
  app.add_option("--dir", options.dir, "folder of the data set")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_flag("--generate", options.generate, "draw a stand-in, do not use the network");
  app.add_option("--records", options.stand_in.train_records,
                 "training records of the stand-in; a fifth as many for testing")
      ->capture_default_str();
  app.add_option("--seed", options.stand_in.seed, "seed of the stand-in")->capture_default_str();
  app.add_option("--url", options.url, "archive to download; then there is no stand-in")
      ->type_name("URL");
  app.add_option("--md5", options.md5, "checksum of that archive")
      ->type_name("HEX")
      ->needs("--url");
}

void require_known(const std::string& name) {
  if (std::find(kDataSets.begin(), kDataSets.end(), name) != kDataSets.end()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("unknown data set '{}'{} (known: {})", name,
                          did_you_mean(name, kDataSets), fmt::join(kDataSets, ", ")));
}

void get_cifar10(const PrepareOptions& options) {
  const PreparedData data = prepare_cifar10(options);
  const auto train = Cifar10::load(data.dir, Split::kTrain);
  const auto test = Cifar10::load(data.dir, Split::kTest);
  const auto missing = missing_cifar10_warning(data.dir, Split::kTrain);
  if (!missing.empty()) log_warn(missing);
  fmt::print("{}: {} training and {} test records ({})\n", data.dir.string(), train.size(),
             test.size(), data.stand_in ? "generated stand-in" : "CIFAR-10");
}

/// Replaces this process by the program that draws. Errors: kNotFound if it was not built.
[[noreturn]] void draw_text(const std::vector<std::string>& args) {
  app::execute_beside("lockstep-data-synth-ocr", args);
  throw Error(
      ErrorCode::kNotFound,
      "synth-ocr: program lockstep-data-synth-ocr is neither beside lockstep-data nor in PATH; "
      "scripts/build.sh release lockstep-data-synth-ocr builds it");
}

int body(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "synth-ocr") draw_text({argv + 2, argv + argc});
  if (argc > 1 && std::string_view(argv[1]) == "images") {
    return app::write_recipe(argc - 1, argv + 1);
  }
  CLI::App app("Gets a data set onto this machine.", "lockstep data");
  std::string name;
  PrepareOptions options;
  add_options(app, name, options);
  if (const auto status = app::parse_command_line(app, reversed_arguments(argc, argv)))
    return *status;
  require_known(name);
  options.stand_in.test_records = std::max<int64_t>(options.stand_in.train_records / 5, 10);
  get_cifar10(options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("lockstep data", body, argc, argv);
}
