#include "lockstep/data/pictures/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/base/folder.h"
#include "lockstep/base/text.h"
#include "lockstep/data/pictures/folder.h"
#include "lockstep/data/pictures/listing.h"
#include "lockstep/data/pictures/reader.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMeasured = 60;  // two seconds for photographs

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// The parts of `folder` for training and for evaluation; no `train` if its folders are classes. A
/// class among others may be called "train" or "Test", too.
SplitFolders splits_of(const fs::path& folder) {
  if (!is_folder(folder)) return {};
  auto names = list_folder(folder);
  std::erase_if(names, is_ignored_name);
  // By their names first: a million pictures would be a million questions to a file server.
  if (SplitFolders::among(names).train.empty()) return {};
  std::erase_if(names, [&](const std::string& name) { return !is_folder(folder / name); });
  auto splits = SplitFolders::among(names);
  if (splits.others == 0) return splits;
  constexpr std::array<std::string_view, 5> kUsual = {"train", "val", "valid", "validation",
                                                      "test"};
  std::erase_if(names, [&](const std::string& name) {
    return std::find(kUsual.begin(), kUsual.end(), name) == kUsual.end();
  });
  const auto usual = SplitFolders::among(names);
  return usual.train.empty() || usual.eval.empty() ? SplitFolders() : usual;
}

/// The median of some pictures' shorter sides.
int shorter_side_of(const PictureIndex& index) {
  const int64_t count = std::min(index.size(), kMeasured);
  std::vector<int> sides;
  std::string fault;
  for (int64_t i = 0; i < count; ++i) {
    try {
      const cv::Mat picture = read_picture(index.path(i * index.size() / count));
      sides.push_back(std::min(picture.rows, picture.cols));
    } catch (const Error& error) {
      fault = error.what();
    }
  }
  if (sides.empty()) throw Error(ErrorCode::kCorrupt, fault);
  const auto middle = sides.begin() + std::ssize(sides) / 2;
  std::nth_element(sides.begin(), middle, sides.end());
  return *middle;
}

void count_classes(const PictureIndex& index, FolderFacts& facts) {
  std::vector<int64_t> sizes(static_cast<size_t>(index.classes().count));
  for (int64_t i = 0; i < index.size(); ++i) ++sizes[static_cast<size_t>(index.label(i))];
  std::erase(sizes, 0);
  if (sizes.empty()) return;
  const auto [smallest, largest] = std::minmax_element(sizes.begin(), sizes.end());
  facts.smallest_class = *smallest;
  facts.largest_class = *largest;
}

std::string train_steps(int side) {
  if (side == 32) {
    return "      - Resize: {size: 32}\n"
           "      - RandomCrop: {size: 32, padding: 4}\n";
  }
  return fmt::format("      - RandomResizedCrop: {{size: {}, scale: [0.25, 1]}}\n", side);
}

std::string eval_steps(int side) {
  const int around = side == 32 ? 32 : side * 8 / 7;
  return fmt::format(
      "      - Resize: {{size: {}}}  # of the shorter side\n"
      "      - CenterCrop: {{size: {}}}\n",
      around, side);
}

/// The keys in front of the number of classes.
std::string model_of(const RecipeChoice& choice) {
  if (choice.network.empty()) {
    return fmt::format(
        "  backbone:\n    name: resnet18\n"
        "    stem: {}  # for pictures of {} pixels a side\n"
        "  head:\n    name: ClsHead\n",
        choice.side == 32 ? "cifar" : "imagenet", choice.side);
  }
  const std::string size =
      choice.network.starts_with("vit") ? fmt::format("    image_size: {}\n", choice.side) : "";
  return fmt::format("  network:\n    name: {}\n{}  head:\n", double_quoted(choice.network), size);
}

std::string optimizer_of(const RecipeChoice& choice) {
  if (choice.as_transformer) return "  opt: adamw\n  weight_decay: 0.05\n";
  return "  opt: momentum\n  momentum: 0.9\n  nesterov: True\n  weight_decay: 5.0e-4\n";
}

std::string dataset_of(const fs::path& folder, bool holds_out) {
  std::string text = fmt::format("    type: ImageFolderDataset\n    data_dir: {}\n",
                                 double_quoted(folder.string()));
  if (holds_out) {
    text += fmt::format(
        "    held_out: {}  # one of so many pictures of each class is for evaluation alone\n",
        kHeldOut);
  }
  return text + "    transform_pipeline:\n";
}

}  // namespace

FolderFacts look_at_folder(const fs::path& folder) {
  FolderFacts facts;
  facts.train = folder;
  const auto splits = splits_of(folder);
  if (!splits.train.empty()) {
    facts.train = folder / splits.train;
    if (!splits.eval.empty()) facts.eval = folder / splits.eval;
  }
  const bool holds_out = facts.eval.empty();
  const int64_t part = holds_out ? kHeldOut : 0;
  const auto index = index_folder(facts.train, {.held_out = part, .split = Split::kTrain});
  facts.classes = index.classes();
  facts.train_pictures = index.size();
  facts.warnings = index.warnings();
  count_classes(index, facts);
  facts.shorter_side = shorter_side_of(index);
  facts.eval_pictures = index_folder(holds_out ? facts.train : facts.eval,
                                     {.held_out = part, .split = Split::kTest}, facts.classes)
                            .size();
  return facts;
}

std::string unbalanced_note(const FolderFacts& facts) {
  if (facts.largest_class < 3 * facts.smallest_class) return "";
  return fmt::format(
      "Classes: {} to {} pictures; sampler: balanced in train.loader draws them alike",
      facts.smallest_class, facts.largest_class);
}

RecipeChoice choose_recipe(const FolderFacts& facts, const std::string& network) {
  RecipeChoice choice;
  choice.network = network;
  choice.as_transformer = network.starts_with("vit") || network.starts_with("convnext");
  choice.side = facts.shorter_side < 48    ? 32
                : facts.shorter_side < 96  ? 64
                : facts.shorter_side < 176 ? 128
                                           : 224;
  if (facts.train_pictures < 640) {  // twenty steps of one rank
    // A batch for each of four ranks; batch norm needs two pictures.
    choice.batch_size = std::clamp<int64_t>(facts.train_pictures / 4, 2, 8);
    choice.lr = 0.02;
  }
  if (choice.as_transformer) choice.lr /= 100;
  choice.epochs = std::clamp<int64_t>(150'000 / facts.train_pictures, 5, 30);
  return choice;
}

std::string network_title(const RecipeChoice& choice) {
  return choice.network.empty() ? "ResNet-18" : choice.network;
}

namespace {

std::filesystem::path whole(const std::filesystem::path& path) {
  return std::filesystem::weakly_canonical(std::filesystem::absolute(path));
}

bool lies_in(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const auto from_folder = whole(path).lexically_relative(whole(folder));
  return !from_folder.empty() && *from_folder.begin() != "..";
}

}  // namespace

std::filesystem::path results_of(const std::filesystem::path& recipe,
                                 const std::filesystem::path& pictures) {
  for (const auto& place : {recipe.parent_path(), std::filesystem::path("runs")}) {
    if (!lies_in(place / recipe.stem(), pictures)) return place / recipe.stem();
  }
  return whole(pictures).parent_path() / "runs" / recipe.stem();
}

std::string recipe_yaml(const FolderFacts& facts, const RecipeChoice& choice,
                        const fs::path& results) {
  std::vector<std::string> names;
  for (const auto& name : facts.classes.names) names.push_back(double_quoted(name));
  const bool holds_out = facts.eval.empty();
  return fmt::format(
      R"(# {} on {}: {} pictures of {} classes, {} for evaluation.
# Written by `lockstep data images`; every value may be changed.
system:
  distribute: True
  seed: 42
  log_interval: 10
  val_while_train: True
  ckpt_max_keep: 3

model:
  type: cls
{}    num_classes: {}

postprocess:
  name: ClsPostprocess
  label_list: [{}]

loss:
  name: CrossEntropySmooth
  smoothing: 0.1

scheduler:
  scheduler: one_cycle
  lr: {}  # the peak
  num_epochs: {}

optimizer:
{}
train:
  ckpt_save_dir: {}
  dataset:
{}{}      - RandomHorizontalFlip:  # not for writing, or signs that point
      - NormalizeImage:
  loader:
    shuffle: True
    sampler: random  # balanced: each class as often as any other
    batch_size: {}  # of one rank
    drop_remainder: True
    num_workers: 4

eval:
  dataset:
{}{}      - NormalizeImage:
  loader:
    shuffle: False
    batch_size: 32
    num_workers: 4
)",
      network_title(choice), double_quoted(facts.train.string()), facts.train_pictures,
      facts.classes.count, facts.eval_pictures, model_of(choice), facts.classes.count,
      fmt::join(names, ", "), choice.lr, choice.epochs, optimizer_of(choice),
      double_quoted(results.string()), dataset_of(facts.train, holds_out), train_steps(choice.side),
      choice.batch_size, dataset_of(holds_out ? facts.train : facts.eval, holds_out),
      eval_steps(choice.side));
}

}  // namespace lockstep::inline internal
