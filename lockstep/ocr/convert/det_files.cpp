// The label files of detection sets, in MindOCR's order.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <opencv2/imgcodecs.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/error.h"
#include "lockstep/ocr/convert/label_json.h"
#include "lockstep/ocr/convert/label_set.h"
#include "lockstep/ocr/convert/lines.h"
#include "lockstep/ocr/convert/parse_set.h"

namespace lockstep::ocr {
namespace {

// The mapping from label files to pictures of each detection set.

enum class Order {
  kByLabel,    ///< Label files sorted by name; each names its picture.
  kByPicture,  ///< Pictures sorted by the number at the end of their name; each has a label file.
};

/// A set with one label file per picture.
struct LabelSet {
  std::string_view name;
  Order order;
  const char* ending;  ///< Of label files.
  /// Maps a label file's name to its picture's, or, by picture, a picture's to its label file's.
  std::string (*other)(const std::string&);
  std::vector<LabelWord> (*parse)(const std::string&, const std::string&, LabelNotes&);
};

/// CTW1500's training set, used if its folder has no .txt; the user cannot select it by name.
constexpr std::string_view kCtwTraining = "ctw1500, training";

std::string before_first(const std::string& name, char separator) {
  return name.substr(0, name.find(separator));
}
std::string behind(const std::string& name, size_t begin) {
  return name.substr(std::min(begin, name.size()));
}
std::string bare_name(const std::string& name) {
  return std::filesystem::path(name).stem().string();
}

const std::array<LabelSet, 13> kLabelSets = {{
    {"ic15", Order::kByLabel, ".txt",
     [](const std::string& n) { return behind(bare_name(n), 3) + ".jpg"; }, parse_ic15},
    {"mlt2017", Order::kByPicture, ".txt",
     [](const std::string& n) { return "gt_" + bare_name(n) + ".txt"; }, parse_mlt},
    {"mlt2019", Order::kByPicture, ".txt",
     [](const std::string& n) { return bare_name(n) + ".txt"; }, parse_mlt},
    {"rctw17", Order::kByLabel, ".txt",
     [](const std::string& n) { return before_first(n, '.') + ".jpg"; }, parse_rctw17},
    {"mtwi2018", Order::kByLabel, ".txt",
     [](const std::string& n) { return bare_name(n) + ".jpg"; }, parse_mtwi2018},
    {"td500", Order::kByLabel, ".gt", [](const std::string& n) { return bare_name(n) + ".JPG"; },
     parse_td500},
    {"totaltext", Order::kByLabel, ".txt",
     [](const std::string& n) { return before_first(behind(n, n.rfind('_') + 1), '.') + ".jpg"; },
     parse_totaltext},
    {"ctw1500", Order::kByLabel, ".txt",
     [](const std::string& n) { return behind(before_first(n, '.'), 3) + ".jpg"; }, parse_ctw1500},
    {kCtwTraining, Order::kByLabel, ".xml",
     [](const std::string& n) { return before_first(n, '.') + ".jpg"; }, parse_ctw1500_xml},
    {"casia10k", Order::kByLabel, ".txt",
     [](const std::string& n) { return before_first(n, '.') + ".jpg"; }, parse_casia10k},
    {"sroie", Order::kByLabel, ".txt",
     [](const std::string& n) { return before_first(n, '.') + ".jpg"; }, parse_sroie},
    {"borndigital", Order::kByPicture, ".txt",
     [](const std::string& n) { return "gt_" + bare_name(n) + ".txt"; }, parse_borndigital},
    {"rects", Order::kByPicture, ".json",
     [](const std::string& n) { return bare_name(n) + ".json"; }, parse_rects},
}};

/// Null if there is no such set.
const LabelSet* find_label_set(std::string_view name) {
  const auto found = std::find_if(kLabelSets.begin(), kLabelSets.end(),
                                  [&](const LabelSet& set) { return set.name == name; });
  return found != kLabelSets.end() ? found : nullptr;
}

namespace fs = std::filesystem;

std::string stem(const std::string& name) {
  return fs::path(name).stem().string();
}

/// Names in a folder, without hidden ones. Errors: kNotFound, kIo.
std::vector<std::string> names_in(const std::string& folder, std::string_view ending) {
  if (!fs::exists(folder))
    throw Error(ErrorCode::kNotFound, folder + ": No such file or directory");
  std::vector<std::string> names = list_folder(folder);
  std::erase_if(names, [&](const std::string& name) {
    return name.starts_with('.') || !name.ends_with(ending);
  });
  return names;
}

int64_t number_at_end(const std::string& folder, const std::string& name) {
  const std::string bare = stem(name);
  return whole_number(bare.substr(bare.rfind('_') + 1), {(fs::path(folder) / name).string(), 0});
}

/// Pictures sorted by the number behind the last '_' of their name.
std::vector<std::string> pictures_in(const std::string& folder) {
  std::vector<std::pair<int64_t, std::string>> numbered;
  for (std::string& name : names_in(folder, "")) {
    numbered.emplace_back(number_at_end(folder, name), std::move(name));
  }
  std::stable_sort(numbered.begin(), numbered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [number, name] : numbered) names.push_back(std::move(name));
  return names;
}

class DetFile {
 public:
  DetFile(const ConvertOptions& options, const ConvertProgress& progress, ConvertResult& result)
      : options_(options), progress_(progress), result_(result) {}

  std::string by_label(const LabelSet& set) {
    const auto labels = names_in(options_.label_dir, set.ending);
    if (labels.empty() && set.name == "ctw1500") return by_label(*find_label_set(kCtwTraining));
    if (labels.empty()) {
      throw Error(ErrorCode::kNotFound,
                  fmt::format("{}: no label files *{}", options_.label_dir, set.ending));
    }
    for (const std::string& label : labels) {
      const std::string file = (fs::path(options_.label_dir) / label).string();
      if (set.name == "sroie" && is_left_out(set.other(label))) continue;
      const auto picture = find_picture(set.other(label), file);
      if (set.name == "mtwi2018" && cv::imread(picture.string()).empty()) {
        result_.notes.push_back(fmt::format("{}: does not decode, skipping it", picture.string()));
        continue;
      }
      add(picture, read_words(set, file), labels.size());
    }
    return std::move(text_);
  }

  std::string by_picture(const LabelSet& set) {
    const auto pictures = pictures_in(options_.image_dir);
    for (const std::string& picture : pictures) {
      if (is_other_form(picture)) continue;
      const fs::path file = fs::path(options_.label_dir) / set.other(picture);
      if (!fs::exists(file)) {
        throw Error(ErrorCode::kNotFound,
                    fmt::format("{}: no such label file, but there is {}", file.string(), picture));
      }
      add(fs::path(options_.image_dir) / picture, read_words(set, file.string()), pictures.size());
    }
    return std::move(text_);
  }

  std::string syntext() {
    const auto images =
        parse_syntext150k(read_file(options_.label_dir, kMaxLabelBytes), options_.label_dir);
    for (const SynTextImage& image : images) {
      fs::path picture = fs::path(options_.image_dir) / fmt::format("{:07}.jpg", image.number);
      if (!fs::exists(picture)) picture.replace_filename(fmt::format("{:08}.jpg", image.number));
      require_picture(picture, options_.label_dir);
      add(picture, image.words, images.size());
    }
    return std::move(text_);
  }

  /// LSVT and ArT: one file that names pictures without their ending.
  std::string by_stem() {
    const std::string& file = options_.label_dir;
    const auto labels = parse_art(read_file(file, kMaxLabelBytes), file,
                                  options_.dataset_name == "ic19_art", result_.notes);
    const auto pictures = pictures_in(options_.image_dir);
    for (const std::string& picture : pictures) {
      const auto found = labels.find(stem(picture));
      if (found == labels.end()) throw_bad_label({file, 0}, "no labels for " + picture);
      add(fs::path(options_.image_dir) / picture, found->second, pictures.size());
    }
    return std::move(text_);
  }

  std::string by_list(const std::vector<LabelledPicture>& pictures) {
    for (const auto& [name, words] : pictures) {
      const fs::path picture = fs::path(options_.image_dir) / name;
      require_picture(picture, options_.label_dir);
      add(picture, words, pictures.size());
    }
    return std::move(text_);
  }

 private:
  /// SROIE has labels without a picture, and second copies, whose names are longer.
  bool is_left_out(const std::string& picture) {
    constexpr size_t kCopy = 19;
    const bool is_there = fs::exists(fs::path(options_.image_dir) / picture);
    if (is_there && picture.size() != kCopy) return false;
    result_.notes.push_back(picture + (is_there ? ": a copy, left out" : ": no such picture"));
    return true;
  }

  /// Moving pictures have a still one beside them, which is used instead.
  bool is_other_form(const std::string& picture) const {
    if (!picture.ends_with(".gif") && !picture.ends_with(".GIF")) return false;
    if (fs::exists(fs::path(options_.image_dir) / (stem(picture) + ".png"))) return true;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: a moving picture; put a {}.png beside it",
                            (fs::path(options_.image_dir) / picture).string(), stem(picture)));
  }

  void require_picture(const fs::path& picture, const std::string& label_file) const {
    if (fs::exists(picture)) return;
    throw Error(ErrorCode::kNotFound, fmt::format("{}: no such picture, but {} has labels for it",
                                                  picture.string(), label_file));
  }

  fs::path find_picture(const std::string& name, const std::string& label_file) const {
    fs::path picture = fs::path(options_.image_dir) / name;
    if (options_.dataset_name == "totaltext" && !fs::exists(picture))
      picture.replace_extension(".JPG");
    require_picture(picture, label_file);
    return picture;
  }

  std::vector<LabelWord> read_words(const LabelSet& set, const std::string& file) {
    return set.parse(read_file(file), file, result_.notes);
  }

  void add(const fs::path& picture, const std::vector<LabelWord>& words, size_t total) {
    const bool relative = options_.path_mode == "relative";
    text_ += (relative ? picture.filename().string() : picture.string()) + "\t" +
             label_json(words) + "\n";
    ++result_.images;
    if (progress_) progress_(result_.images, static_cast<int64_t>(total));
  }

  const ConvertOptions& options_;
  const ConvertProgress& progress_;
  ConvertResult& result_;
  std::string text_;
};

}  // namespace

bool has_det_labels(const std::string& dataset_name) {
  const std::array<std::string_view, 6> files = {"syntext150k", "lsvt",    "ic19_art",
                                                 "ctw",         "textocr", "cocotext"};
  return std::find(files.begin(), files.end(), dataset_name) != files.end() ||
         find_label_set(dataset_name) != nullptr;
}

std::string det_label_file(const ConvertOptions& options, const ConvertProgress& progress,
                           ConvertResult& result) {
  DetFile file(options, progress, result);
  const std::string &name = options.dataset_name, &labels = options.label_dir;
  const auto text = [&] { return read_file(labels, kMaxLabelBytes); };
  if (name == "syntext150k") return file.syntext();
  if (name == "lsvt" || name == "ic19_art") return file.by_stem();
  if (name == "ctw") return file.by_list(parse_ctw(text(), labels, result.notes));
  if (name == "textocr") return file.by_list(parse_textocr(text(), labels, result.notes));
  if (name == "cocotext") {
    return file.by_list(parse_cocotext(text(), labels, options.split, result.notes));
  }
  const LabelSet& set = *find_label_set(name);
  return set.order == Order::kByLabel ? file.by_label(set) : file.by_picture(set);
}

}  // namespace lockstep::ocr
