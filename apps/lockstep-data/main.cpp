// lockstep data SET: gets a data set onto this machine. Links no libtorch.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "apps/lockstep-data/synth_ocr.h"
#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/data/fetch/prepare.h"

namespace {

using namespace lockstep;

const std::vector<std::string> kDataSets = {"cifar10", "synth-ocr"};

void add_options(CLI::App& app, std::string& name, PrepareOptions& options) {
  app.add_option("SET", name,
                 "cifar10: CIFAR-10 in binary form; what is there, else a download, else a "
                 "generated stand-in. synth-ocr: drawn pictures with text, see "
                 "lockstep data synth-ocr --help")
      ->required();
  app.add_option("--dir", options.dir, "Folder of the data set")->capture_default_str();
  app.add_flag("--generate", options.generate, "Draw a stand-in, do not ask the network");
  app.add_option("--records", options.stand_in.train_records,
                 "Training records of the stand-in; a fifth as many for testing")
      ->capture_default_str();
  app.add_option("--seed", options.stand_in.seed, "Seed of the stand-in")->capture_default_str();
  app.add_option("--url", options.url, "Archive to download; then there is no stand-in");
  app.add_option("--md5", options.md5, "Checksum of that archive")->needs("--url");
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
  fmt::print("{}: {} training and {} test records ({})\n", data.dir.string(), train.size(),
             test.size(), data.stand_in ? "generated stand-in" : "CIFAR-10");
}

int body(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "synth-ocr") {
    return app::make_synth_ocr(argc - 1, argv + 1);
  }
  CLI::App app("Gets a data set onto this machine", "lockstep data");
  std::string name;
  PrepareOptions options;
  add_options(app, name, options);
  try {
    app.parse(reversed_arguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    throw Error(ErrorCode::kInvalidArgument,
                std::string(error.what()) + " (see lockstep data --help)");
  }
  require_known(name);
  options.stand_in.test_records = std::max<int64_t>(options.stand_in.train_records / 5, 10);
  get_cifar10(options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("lockstep data", body, argc, argv);
}
