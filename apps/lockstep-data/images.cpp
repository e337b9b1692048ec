#include "apps/lockstep-data/images.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/base/counted.h"
#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/log.h"
#include "lockstep/base/options.h"
#include "lockstep/base/text.h"
#include "lockstep/data/pictures/recipe.h"
#include "lockstep/error.h"
#include "lockstep/models/spec/zoo_names.h"

namespace lockstep::app {
namespace {

namespace fs = std::filesystem;

struct Request {
  fs::path output;
  std::string network;
  bool help = false;
};

OptionGroup<Request> images_options() {
  using R = Request;
  return {"",
          {{"output", 'o', OptionKind::kValue, "FILE",
            "file to write; without it, runs/FOLDER.yaml", set_path<&R::output>},
           {"network", 0, OptionKind::kValue, "NAME",
            "a network of `lockstep train --list networks`, in the place of ResNet-18",
            set_text<&R::network>},
           help_option<R>()}};
}

int print_images_help() {
  return print_help({{{"lockstep data images FOLDER [OPTIONS]", ""}},
                     "Writes a configuration that trains on a folder of pictures.",
                     {{"",
                       {{"FOLDER",
                         "a sub-folder of pictures for each class; or these below FOLDER/train "
                         "and FOLDER/val"}}},
                      help_group(images_options())},
                     ""});
}

/// Errors: kInvalidArgument with the nearest name.
void check_network(const std::string& name, const std::string& verb) {
  const std::vector<std::string> names(kZooNames.begin(), kZooNames.end());
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: --network: no network '{}'{} (there are: {})", verb, name,
                          did_you_mean(name, names), fmt::join(names, ", ")));
}

/// The folder's own name, also of "photos/", "." and "..".
std::string name_of(const fs::path& folder) {
  const auto name = without_slash(fs::absolute(folder).lexically_normal()).filename().string();
  return name.empty() || name == "/" ? "pictures" : name;
}

std::string summary_of(const FolderFacts& facts, const RecipeChoice& choice,
                       const fs::path& output) {
  const std::string unbalanced = unbalanced_note(facts);
  return fmt::format(
      "Pictures: {} in {}, {}, shorter side {} pixels\n"
      "{}"
      "Evaluation: {} pictures {}\n"
      "Training: {} on {} x {} pixels, {} epochs, batches of {} a rank\n"
      "Configuration: {}\n"
      "Next: lockstep train -c {}\n",
      facts.train_pictures, facts.train.string(), counted(facts.classes.count, "class", "classes"),
      facts.shorter_side, unbalanced.empty() ? "" : unbalanced + "\n", facts.eval_pictures,
      facts.eval.empty() ? fmt::format("held out, one of {} of each class", kHeldOut)
                         : "in " + facts.eval.string(),
      network_title(choice), choice.side, choice.side, choice.epochs, choice.batch_size,
      output.string(), output.string());
}

}  // namespace

int write_recipe(int argc, char** argv) {
  const std::string verb = "lockstep data images";
  Request request;
  auto words = read_request({argv + 1, argv + argc}, images_options().options, verb, request);
  if (request.help) return print_images_help();
  if (words.empty()) throw Error(ErrorCode::kInvalidArgument, verb + ": which FOLDER?");
  if (words[0].empty()) {
    throw Error(ErrorCode::kInvalidArgument, verb + ": the name of FOLDER is empty");
  }
  const fs::path folder = words[0];
  words.erase(words.begin());
  refuse_rest(words, names_of(images_options().options), verb);
  check_network(request.network, verb);
  fs::path output = request.output;
  if (output.empty()) output = fs::path("runs") / (name_of(folder) + ".yaml");
  std::error_code unseen;
  if (fs::exists(output, unseen)) {
    throw Error(ErrorCode::kInvalidArgument,
                output.string() + " exists: remove it, or name another file by --output");
  }
  const fs::path above = output.has_parent_path() ? output.parent_path() : ".";
  if (fs::exists(above, unseen) || unseen) check_output_file(output);
  const FolderFacts facts = look_at_folder(without_slash(folder));
  const RecipeChoice choice = choose_recipe(facts, request.network);
  const fs::path results = results_of(output, without_slash(folder));
  if (!output.parent_path().empty()) make_folder(output.parent_path());
  write_file_atomically(output, recipe_yaml(facts, choice, results));
  for (const auto& line : facts.warnings) log_warn(line);
  fmt::print("{}", summary_of(facts, choice, output));
  return 0;
}

}  // namespace lockstep::app
