#include "lockstep/predict/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/error.h"
#include "lockstep/ocr/draw/crop.h"
#include "lockstep/ocr/predict/pictures.h"
#include "lockstep/ocr/predict/result_lines.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

/// The picture in OpenCV's own order of channels, to draw on and to write.
cv::Mat as_bgr(const cv::Mat& picture, ocr::ImageMode mode) {
  if (mode != ocr::ImageMode::kRgb) return picture;
  cv::Mat result;
  cv::cvtColor(picture, result, cv::COLOR_RGB2BGR);
  return result;
}

/// A small picture becomes a whole number of times as large, so that a caption can be read; a long
/// one does not grow beyond a bound.
cv::Mat readable(const cv::Mat& picture) {
  constexpr int kLeastWidth = 160;
  constexpr int kMostHeight = 4096;
  const int wanted = (kLeastWidth + picture.cols - 1) / picture.cols;
  const int times = std::min(wanted, kMostHeight / picture.rows);
  if (times <= 1) return picture;
  cv::Mat result;
  cv::resize(picture, result, {}, times, times, cv::INTER_NEAREST);
  return result;
}

/// The outline of a whole picture.
ocr::Polygon frame_of(const cv::Size& size) {
  const auto right = static_cast<float>(size.width - 1);
  const auto bottom = static_cast<float>(size.height - 1);
  return {{0, 0}, {right, 0}, {right, bottom}, {0, bottom}};
}

/// Writes the file completely or not at all.
void save_picture(const fs::path& path, const cv::Mat& picture) {
  std::vector<uint8_t> bytes;
  try {
    cv::imencode(path.extension().string(), picture, bytes);
  } catch (const cv::Exception& error) {
    throw Error(ErrorCode::kInternal, fmt::format("write {}: {}", path.string(), error.err));
  }
  write_file_atomically(
      path, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string file_of(const ocr::Sample& picture) {
  return fs::path(picture.source).filename().string();
}

/// Recipes name a font of MindOCR's repository, which may be absent here.
std::string family_of(const std::string& font) {
  try {
    return ocr::add_font(font);
  } catch (const Error& error) {
    log_warn(std::string("predict.vis_font_path: ") + error.what() + "; the system's are taken");
    return "Sans";
  }
}

}  // namespace

Predictor::Predictor(const PredictPlan& plan, c10::Device device) : plan_(plan) {
  if (plan.cls) classifier_.emplace(*plan.cls, device);
  if (plan.det) detector_.emplace(*plan.det, device);
  if (plan.rec) recogniser_.emplace(*plan.rec, device);
  if (!detector_ || !recogniser_ || !plan.rec->config.predict) return;
  const std::string& font = plan.rec->config.predict->vis_font_path;
  if (!font.empty()) font_ = family_of(font);
}

/// A batch of photographs takes hundreds of megabytes.
ocr::Sample Predictor::load(const fs::path& picture) const {
  ocr::Sample sample = load_whole(picture);
  if (!plan_.keeps_pictures()) sample.original.release();
  return sample;
}

ocr::Sample Predictor::load_whole(const fs::path& picture) const {
  if (classifier_) return classifier_->load(picture, plan_.keeps_pictures());
  return detector_ ? detector_->load(picture) : recogniser_->load(picture);
}

size_t Predictor::batch() const {
  if (classifier_) return classifier_->batch();
  return detector_ ? detector_->batch() : recogniser_->batch();
}

std::vector<Outcome> Predictor::operator()(const Samples& pictures,
                                           const std::vector<std::string>& names) {
  if (classifier_) return classify(pictures, names);
  if (!detector_) return read_words(pictures);
  std::vector<Outcome> outcomes;
  const auto found = (*detector_)(pictures);
  for (size_t i = 0; i < pictures.size(); ++i) {
    outcomes.push_back(recogniser_ ? read_regions(pictures[i], names[i], found[i])
                                   : Outcome{true, list_regions(pictures[i], names[i], found[i])});
  }
  return outcomes;
}

std::vector<Outcome> Predictor::classify(const Samples& pictures,
                                         const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const auto& picture : pictures) {
    files.push_back(ocr::name_below(picture.source, plan_.input));
  }
  const auto found = (*classifier_)(pictures, files);
  std::vector<Outcome> outcomes;
  for (size_t i = 0; i < found.size(); ++i) {
    outcomes.push_back({true, found[i].line});
    if (!plan_.draw) continue;
    const cv::Mat picture = readable(pictures[i].original);
    draw(names[i] + "_cls_res.png", picture, ocr::ImageMode::kRgb,
         {{frame_of(picture.size()), found[i].caption}});
  }
  return outcomes;
}

std::vector<Outcome> Predictor::read_words(const Samples& pictures) {
  const auto texts = (*recogniser_)(pictures);
  std::vector<Outcome> outcomes;
  for (size_t i = 0; i < texts.size(); ++i) {
    outcomes.push_back({true, ocr::recognition_line(file_of(pictures[i]), texts[i].text)});
  }
  return outcomes;
}

std::string Predictor::list_regions(const ocr::Sample& picture, const std::string& name,
                                    const Regions& found) {
  const auto regions = ocr::checked_regions(found, picture.raw_size);
  std::vector<ocr::Annotation> shown;
  for (const auto& one : regions) shown.push_back({one, ""});
  draw(name + "_det_res.png", picture.original, detector_->mode(), shown);
  return ocr::detection_line(file_of(picture), regions);
}

Outcome Predictor::read_regions(const ocr::Sample& picture, const std::string& name,
                                const Regions& found) {
  const auto regions = ocr::checked_regions(found, picture.original.size());
  std::vector<cv::Mat> crops;
  std::vector<std::string> names;
  for (const auto& one : regions) {
    crops.push_back(ocr::crop_text_region(picture.original, one));
    names.push_back(fmt::format("{}: region {}", picture.source, ocr::corners_text(one)));
  }
  const auto results = (*recogniser_)(crops, names, detector_->mode());
  Outcome outcome{true, ""};
  std::vector<ocr::ReadRegion> read;
  std::vector<ocr::Annotation> shown;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto& [text, fault] = results[i];
    if (!text) outcome.faults.push_back(fault);
    if (text) ++outcome.usable_regions;
    if (!text || text->confidence < plan_.drop_score) continue;
    read.push_back({regions[i], text->text});
    shown.push_back({regions[i], text->text});
  }
  draw(name + "_res.png", picture.original, detector_->mode(), shown);
  outcome.text = ocr::system_line(file_of(picture), read);
  return outcome;
}

void Predictor::draw(const std::string& file, const cv::Mat& picture, ocr::ImageMode mode,
                     const std::vector<ocr::Annotation>& shown) {
  if (!plan_.draw) return;
  save_picture(plan_.output / file, ocr::annotate(as_bgr(picture, mode), shown, font_));
}

}  // namespace lockstep::inline internal
