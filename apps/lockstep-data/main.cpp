// lockstep data SET: gets a data set onto this machine. Links no libtorch.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "apps/lockstep-data/images.h"
#include "apps/lockstep/verbs.h"
#include "lockstep/base/log.h"
#include "lockstep/base/options.h"
#include "lockstep/base/text.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/data/fetch/prepare.h"
#include "lockstep/error.h"

namespace {

using namespace lockstep;

/// A terabyte of pictures.
constexpr int64_t kMaxRecords = 300'000'000;

const std::vector<std::string> kDataSets = {"cifar10", "images", "synth-ocr"};

struct Request : PrepareOptions {
  bool help = false;
};

OptionGroup<Request> data_options() {
  using R = Request;
  using Text = const std::string&;
  constexpr auto kValue = OptionKind::kValue;
  return {"",
          {{"dir", 0, kValue, "DIR", "folder of the data set (default {})", set_text<&R::dir>,
            shows<&R::dir>},
           {"generate", 0, OptionKind::kFlag, "", "draw synthetic pictures, do not use the network",
            set_flag<&R::generate>},
           {"records", 0, kValue, "N",
            "training records of the synthetic data; a fifth as many for testing (default {})",
            [](R& request, Text value, Text what) {
              request.synthetic.train_records = parse_int(value, 0, kMaxRecords, what);
            },
            [](const R& request) {
              return std::vector{default_text(request.synthetic.train_records)};
            }},
           {"seed", 0, kValue, "N", "seed of the synthetic data (default {})",
            [](R& request, Text value, Text what) {
              request.synthetic.seed = static_cast<uint64_t>(parse_int(value, 0, INT64_MAX, what));
            },
            [](const R& request) { return std::vector{default_text(request.synthetic.seed)}; }},
           {"url", 0, kValue, "URL", "archive to download, never replaced by synthetic data",
            set_text<&R::url>},
           {"md5", 0, kValue, "HEX", "checksum of that archive (with --url)", set_text<&R::md5>},
           help_option<R>()}};
}

int print_data_help() {
  return print_help({{{"lockstep data SET [OPTIONS]", ""}},
                     "Gets a data set onto this machine.",
                     {{"",
                       {{"SET",
                         "cifar10: CIFAR-10 in binary form; the existing files, else a download, "
                         "else synthetic pictures. synth-ocr: drawn pictures with text, see "
                         "lockstep data synth-ocr --help. images: a configuration for your own "
                         "pictures, see lockstep data images --help"}}},
                      help_group(data_options())},
                     ""});
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
             test.size(), data.synthetic ? "synthetic data" : "CIFAR-10");
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
  Request options;
  const std::string verb = "lockstep data";
  auto sets = read_request({argv + 1, argv + argc}, data_options().options, verb, options);
  if (options.help) return print_data_help();
  if (sets.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("SET is needed: {}", fmt::join(kDataSets, ", ")));
  }
  require_known(sets[0]);
  sets.erase(sets.begin());
  refuse_rest(sets, names_of(data_options().options), verb);
  if (options.url.empty() && !options.md5.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "--md5 requires --url");
  }
  options.synthetic.test_records = std::max<int64_t>(options.synthetic.train_records / 5, 10);
  get_cifar10(options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("lockstep data", body, argc, argv);
}
