// The real program, with networks that find text everywhere and read "q" in all of it.

#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <regex>
// It needs the headers above.
#include <jpeglib.h>

#include "lockstep/base/file.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/checkpoint/mindspore_file.h"
#include "lockstep/predict/predictor.h"
#include "lockstep/train/picture_data.h"
#include "lockstep/train/setup.h"
#include "lockstep/weights.h"
#include "tests/predict/configs.h"
#include "tests/support/temp_folder.h"

namespace {
std::atomic<int> jpeg_decodes = 0;
}

/// In the place of libjpeg's.
extern "C" boolean jpeg_start_decompress(j_decompress_ptr jpeg) {
  static const auto real = reinterpret_cast<decltype(&::jpeg_start_decompress)>(
      ::dlsym(RTLD_NEXT, "jpeg_start_decompress"));
  ++jpeg_decodes;
  return real(jpeg);
}

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// The last layer of a head outputs `bias` for any input.
void fix_output(Model& model, const std::string& layer, const std::vector<float>& bias) {
  const at::NoGradGuard no_grad;
  auto parameters = model.named_parameters();
  parameters[layer + ".weight"].zero_();
  parameters[layer + ".bias"].copy_(at::tensor(bias));
}

/// A folder with configurations, weights and pictures; the program runs in it.
class PredictProgram : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    write_file_atomically(*folder_ / "det.yaml", testing::det_yaml());
    write_file_atomically(*folder_ / "rec.yaml", testing::rec_yaml());
    auto detector = make_model(load_config(*folder_ / "det.yaml").model, 1);
    fix_output(*detector, "head.segm.6", {4});
    save_ckpt(*folder_ / "det.ckpt", *detector);
    auto recogniser = make_model(load_config(*folder_ / "rec.yaml").model, 1);
    std::vector<float> q(37);
    q[26] = 5;  // 0-9, then a-z
    fix_output(*recogniser, "head.dense1", q);
    save_ckpt(*folder_ / "rec.ckpt", *recogniser);

    write_file_atomically(*folder_ / "cls.yaml", testing::cls_yaml());
    auto classifier = make_model(load_config(*folder_ / "cls.yaml").model, 1);
    fix_output(*classifier, "fc", {0, 2, 1});
    save_ckpt(*folder_ / "cls.ckpt", *classifier);

    write_file_atomically(*folder_ / "own.yaml", testing::own_network_yaml());
    write_file_atomically(*folder_ / "own_data.yaml", testing::own_data_yaml());
    save_tensors(*folder_ / "own.safetensors", {{"layer.weight", 4 * at::eye(3)},
                                                {"layer.bias", at::tensor({0.0F, 2.0F, 1.0F})}});

    fs::create_directories(*folder_ / "pictures/sub");
    save("pictures/a.png", 80, 48);
    save("pictures/b.jpg", 60, 100);
    save("pictures/sub/a.png", 96, 64);
    write_file_atomically(*folder_ / "pictures/broken.jpg", std::string_view("no picture"));
    fs::create_directories(*folder_ / "bad");
    write_file_atomically(*folder_ / "bad/broken.png", std::string_view("no picture"));
    fs::create_symlink("/proc/self/mem", *folder_ / "bad/unreadable.png");  // reading it fails
  }
  static void TearDownTestSuite() { delete folder_; }

  static void save(const std::string& path, int width, int height) {
    cv::imwrite((*folder_ / path).string(),
                cv::Mat(height, width, CV_8UC3, cv::Scalar(9, 99, 200)));
  }

  /// Returns the exit status; standard error is in stderr.txt.
  static int predict(const std::string& args, int ranks = 1) {
    const std::string launcher =
        ranks == 1 ? "" : " run --nproc_per_node " + std::to_string(ranks) + " -- lockstep";
    return run("lockstep" + launcher + " predict " + args);
  }
  static int run(const std::string& command) {
    const std::string bin = std::getenv("LOCKSTEP_BIN_DIR");
    const std::string line = "cd " + folder_->path().string() + " && PATH=" + bin +
                             ":$PATH OMP_NUM_THREADS=1 timeout 100 " + command +
                             " >stdout.txt 2>stderr.txt </dev/null";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static std::string plugin() {
    return std::string("--plugin ") + std::getenv("LOCKSTEP_BIN_DIR") + "/lockstep_mean_colour.so ";
  }
  static std::string text_of(const std::string& file) { return read_file(*folder_ / file); }
  static size_t count_in(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  }

  static TempFolder* folder_;
};
TempFolder* PredictProgram::folder_ = nullptr;

constexpr auto kSystemLines =
    "a.png\t[{\"transcription\": \"q\", \"points\": [[0, 0], [79, 0], [79, 47], [0, 47]]}]\n"
    "b.jpg\t[{\"transcription\": \"q\", \"points\": [[0, 0], [59, 0], [59, 99], [0, 99]]}]\n"
    "a.png\t[{\"transcription\": \"q\", \"points\": [[0, 0], [95, 0], [95, 63], [0, 63]]}]\n";

TEST_F(PredictProgram, DetectsAndDrawsAndPassesOverABadPicture) {
  ASSERT_EQ(predict("-c det.yaml --det det.ckpt --input pictures --output found"), 0)
      << text_of("stderr.txt");
  EXPECT_EQ(text_of("found/det_results.txt"),
            "a.png\t[[[0, 0], [79, 0], [79, 47], [0, 47]]]\n"
            "b.jpg\t[[[0, 0], [59, 0], [59, 99], [0, 99]]]\n"
            "a.png\t[[[0, 0], [95, 0], [95, 63], [0, 63]]]\n");
  const std::string said = text_of("stderr.txt");
  EXPECT_EQ(count_in(said, "broken.jpg"), 1U) << said;
  EXPECT_EQ(count_in(said, "3 pictures in found/det_results.txt; 1 could not be used"), 1U) << said;

  const cv::Mat drawn = cv::imread((*folder_ / "found/b_det_res.png").string());
  ASSERT_EQ(drawn.size(), cv::Size(60, 100));
  EXPECT_GT(drawn.at<cv::Vec3b>(50, 0)[2], 240);  // the outline
  EXPECT_NEAR(drawn.at<cv::Vec3b>(50, 30)[2], 200, 4);
  EXPECT_NEAR(drawn.at<cv::Vec3b>(50, 30)[0], 9, 4);
  EXPECT_TRUE(fs::exists(*folder_ / "found/a_png_det_res.png"));
  EXPECT_TRUE(fs::exists(*folder_ / "found/sub_a_png_det_res.png"));
}

TEST_F(PredictProgram, OneAndThreeRanksWriteTheSameResults) {
  const std::string args =
      "-c det.yaml --det det.ckpt --rec rec.yaml rec.ckpt --input pictures --output ";
  ASSERT_EQ(predict(args + "one"), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("one/system_results.txt"), kSystemLines);
  ASSERT_EQ(predict(args + "three", 3), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("three/system_results.txt"), kSystemLines);
  EXPECT_EQ(count_in(text_of("stderr.txt"), "broken.jpg"), 1U) << text_of("stderr.txt");
  EXPECT_EQ(text_of("one/b_res.png"), text_of("three/b_res.png"));
}

TEST_F(PredictProgram, ReadsWordsAndDropsTextBelowAConfidence) {
  ASSERT_EQ(predict("-c rec.yaml --rec rec.ckpt --input pictures/a.png --output words"), 0)
      << text_of("stderr.txt");
  EXPECT_EQ(text_of("words/rec_results.txt"), "a.png\tq\n");
  ASSERT_EQ(predict("--det det.yaml det.ckpt --rec rec.yaml rec.ckpt --drop_score 0.9 "
                    "--input pictures/a.png --output sure"),
            0)
      << text_of("stderr.txt");
  EXPECT_EQ(text_of("sure/system_results.txt"), "a.png\t[]\n");
}

TEST_F(PredictProgram, BothResultFilesLeaveOutARegionWithoutAnArea) {
  save("dot.png", 2, 1);  // all its corners are in one row
  const std::string args = "-c det.yaml --det det.ckpt --input dot.png --output dot";
  ASSERT_EQ(predict(args), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("dot/det_results.txt"), "dot.png\t[]\n");
  ASSERT_EQ(predict(args + " --rec rec.yaml rec.ckpt"), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("dot/system_results.txt"), "dot.png\t[]\n");
}

TEST_F(PredictProgram, ClassifiesPicturesOfAnySize) {
  const std::string args = "-c cls.yaml --cls cls.ckpt --input pictures --output ";
  ASSERT_EQ(predict(args + "classes"), 0) << text_of("stderr.txt");
  const std::string classes =  // softmax of 0, 2, 1
      "\t[{\"label\": \"ring\", \"class\": 1, \"probability\": 0.665241}, "
      "{\"label\": \"square\", \"class\": 2, \"probability\": 0.244728}, "
      "{\"label\": \"circle\", \"class\": 0, \"probability\": 0.090031}]\n";
  EXPECT_EQ(text_of("classes/cls_results.txt"),
            "a.png" + classes + "b.jpg" + classes + "sub/a.png" + classes);
  EXPECT_EQ(count_in(text_of("stderr.txt"), "1 could not be used"), 1U) << text_of("stderr.txt");
  ASSERT_EQ(predict(args + "by_two", 2), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("by_two/cls_results.txt"), text_of("classes/cls_results.txt"));
  EXPECT_EQ(text_of("by_two/cls_results.csv"), text_of("classes/cls_results.csv"));
  const std::string grey =
      std::regex_replace(testing::cls_yaml(), std::regex("Cifar10Dataset"), "MnistDataset");
  write_file_atomically(*folder_ / "grey.yaml", std::string_view(grey));
  ASSERT_EQ(predict("-c grey.yaml --cls cls.ckpt --input pictures --output grey"), 0)
      << text_of("stderr.txt");
  EXPECT_EQ(text_of("grey/cls_results.txt"), text_of("classes/cls_results.txt"));
}

TEST_F(PredictProgram, AClassifierWhoseWeightsAreNoNumbersIsNamedOnce) {
  auto classifier = make_model(load_config(*folder_ / "cls.yaml").model, 1);
  fix_output(*classifier, "fc", {std::nanf(""), 2, 1});
  save_ckpt(*folder_ / "nan.ckpt", *classifier);
  ASSERT_EQ(predict("-c cls.yaml --cls nan.ckpt --input pictures --output nan --no-draw", 2), 0)
      << text_of("stderr.txt");
  EXPECT_EQ(count_in(text_of("nan/cls_results.csv"), ",circle,nan,ring,nan,square,nan\n"), 3U);
  EXPECT_EQ(count_in(text_of("stderr.txt"),
                     "3 of 3 pictures have probabilities that are not numbers (nan)"),
            1U)
      << text_of("stderr.txt");
}

TEST_F(PredictProgram, AClassifierLeavesATableAndPictures) {
  const std::string args = "-c cls.yaml --cls cls.ckpt --input pictures --output ";
  ASSERT_EQ(predict(args + "drawn -o predict.top_k=2"), 0) << text_of("stderr.txt");
  const std::string classes = ",ring,0.665241,square,0.244728\n";
  EXPECT_EQ(text_of("drawn/cls_results.csv"), "path,class,score,class_2,score_2\na.png" + classes +
                                                  "b.jpg" + classes + "sub/a.png" + classes);
  EXPECT_EQ(count_in(text_of("drawn/cls_results.txt"), "label"), 6U);
  const cv::Mat drawn = cv::imread((*folder_ / "drawn/b_cls_res.png").string());
  ASSERT_EQ(drawn.size(), cv::Size(180, 300));     // three times as large
  EXPECT_GT(drawn.at<cv::Vec3b>(150, 0)[2], 240);  // the outline
  EXPECT_NEAR(drawn.at<cv::Vec3b>(150, 90)[2], 200, 4);
  EXPECT_NEAR(drawn.at<cv::Vec3b>(150, 90)[0], 9, 4);
  EXPECT_LT(drawn.at<cv::Vec3b>(3, 3)[2], 150);  // the caption's ground
  EXPECT_TRUE(fs::exists(*folder_ / "drawn/sub_a_png_cls_res.png"));
  ASSERT_EQ(predict(args + "lines --no-draw"), 0) << text_of("stderr.txt");
  EXPECT_FALSE(fs::exists(*folder_ / "lines/b_cls_res.png"));
  EXPECT_EQ(count_in(text_of("lines/cls_results.csv"), ",circle,"), 3U);
}

TEST_F(PredictProgram, APictureIsKeptWhereItIsDrawnOrCut) {
  const auto in = [](const std::string& name) { return (*folder_ / name).string(); };
  const auto kept = [&](const std::vector<std::string>& networks, bool draw) {
    PredictOptions options;
    options.input = in("pictures");
    options.draw = draw;
    for (const std::string& name : networks) {
      auto& words = name == "det" ? options.det : name == "rec" ? options.rec : options.cls;
      words = {in(name + ".yaml"), in(name + ".ckpt")};
    }
    const auto plan = plan_prediction(options);
    const auto sample = Predictor(plan, at::kCPU).load(in("pictures/a.png"));
    EXPECT_EQ(sample.raw_size, cv::Size(80, 48));
    return !sample.original.empty();
  };
  for (const bool draw : {false, true}) {
    EXPECT_EQ(kept({"cls"}, draw), draw);
    EXPECT_EQ(kept({"det"}, draw), draw);
    EXPECT_FALSE(kept({"rec"}, draw));
    EXPECT_TRUE(kept({"det", "rec"}, draw));
  }
  ASSERT_EQ(predict("-c det.yaml --det det.ckpt --input pictures --no-draw --output lean"), 0)
      << text_of("stderr.txt");
  EXPECT_EQ(text_of("lean/det_results.txt"),
            "a.png\t[[[0, 0], [79, 0], [79, 47], [0, 47]]]\n"
            "b.jpg\t[[[0, 0], [59, 0], [59, 99], [0, 99]]]\n"
            "a.png\t[[[0, 0], [95, 0], [95, 63], [0, 63]]]\n");
}

TEST_F(PredictProgram, AClassifierDecodesAtTheSizeThatEvaluationDoes) {
  cv::Mat noise(256, 256, CV_8UC3);
  cv::RNG(3).fill(noise, cv::RNG::UNIFORM, 0, 256);
  const std::string path = (*folder_ / "large.jpg").string();
  cv::imwrite(path, noise);
  const auto overrides = [](const std::string& reduced) {
    const std::string folder =
        "{type: ImageFolderDataset, data_dir: d, reduced_decoding: " + reduced +
        ", transform_pipeline: [{Resize: {size: [32, 32]}}, "
        "{NormalizeImage: }]}";
    return std::vector<std::string>{"train.dataset=" + folder, "eval.dataset=" + folder};
  };
  const auto input_of = [&](const std::string& reduced) {
    PredictOptions options;
    options.input = path;
    options.cls = {(*folder_ / "cls.yaml").string(), (*folder_ / "cls.ckpt").string()};
    options.overrides = overrides(reduced);
    return Predictor(plan_prediction(options), at::kCPU).load(path).image;
  };
  const Config config = load_config(*folder_ / "cls.yaml", overrides("True"));
  const auto pipeline = make_picture_pipeline(config.eval->dataset, 0);
  const std::string bytes = read_file(path);
  const auto made = pipeline.apply(
      [&](const ocr::ChoosePart& choose) {
        return ocr::decode_part({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
                                choose);
      },
      0, 0);
  const int extents[] = {3, 32, 32};
  cv::Mat evaluated(3, extents, CV_32F);
  pipeline.write(made, evaluated.ptr<float>());
  EXPECT_EQ(cv::norm(input_of("True"), evaluated, cv::NORM_INF), 0);
  EXPECT_GT(cv::norm(input_of("False"), evaluated, cv::NORM_INF), 0);
}

TEST_F(PredictProgram, AClassifierNamesABadPictureOnce) {
  const auto fault = [](const std::string& file, const std::string& type) {
    PredictOptions options;
    options.input = (*folder_ / "pictures/a.png").string();
    options.cls = {(*folder_ / "cls.yaml").string(), (*folder_ / "cls.ckpt").string()};
    const std::string data =
        "{type: " + type +
        ", data_dir: d, transform_pipeline: [{Resize: {size: [32, 32]}}, {NormalizeImage: }]}";
    options.overrides = {"train.dataset=" + data, "eval.dataset=" + data};
    try {
      Predictor(plan_prediction(options), at::kCPU).load(*folder_ / file);
      return std::string("no fault");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  for (const std::string type :
       {"ImageFolderDataset, reduced_decoding: True", "Cifar10Dataset"}) {  // read in two ways
    EXPECT_EQ(fault("gone.png", type), (*folder_ / "gone.png").string() + ": no such file");
    const std::string broken = fault("bad/broken.png", type);
    EXPECT_EQ(broken.find((*folder_ / "bad/broken.png").string() + ": "), 0U) << broken;
    EXPECT_EQ(count_in(broken, "broken.png"), 1U) << broken;
  }
}

/// Counts how often files are opened from now on.
class OpenCounter {
 public:
  explicit OpenCounter(const fs::path& file) : fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(fd_.get(), file.c_str(), IN_OPEN), 0);
  }
  int count() {
    alignas(inotify_event) char events[4096];
    const auto bytes = ::read(fd_.get(), events, sizeof(events));
    int found = 0;
    for (ssize_t at = 0; at < bytes; ++found) {
      const auto* event = reinterpret_cast<const inotify_event*>(events + at);
      at += static_cast<ssize_t>(sizeof(*event) + event->len);
    }
    return found;
  }

 private:
  UniqueFd fd_;
};

TEST_F(PredictProgram, AClassifierReadsAPictureOnceAndDecodesWhatItNeeds) {
  cv::Mat noise(300, 260, CV_8UC3);
  cv::RNG(3).fill(noise, cv::RNG::UNIFORM, 0, 256);
  cv::imwrite((*folder_ / "once.jpg").string(), noise);
  cv::imwrite((*folder_ / "once.png").string(), noise);
  const auto expect = [&](const std::string& file, int side, bool reduces, bool draw, int decodes) {
    SCOPED_TRACE(file + " to " + std::to_string(side) + (draw ? ", drawn" : ""));
    PredictOptions options;
    options.input = (*folder_ / file).string();
    options.draw = draw;
    options.cls = {(*folder_ / "cls.yaml").string(), (*folder_ / "cls.ckpt").string()};
    const std::string size = std::to_string(side);
    const std::string data = "{type: ImageFolderDataset, data_dir: d, reduced_decoding: " +
                             std::string(reduces ? "True" : "False") +
                             ", transform_pipeline: [{Resize: {size: [" + size + ", " + size +
                             "]}}, {NormalizeImage: }]}";
    options.overrides = {"train.dataset=" + data, "eval.dataset=" + data};
    const auto plan = plan_prediction(options);
    const Predictor predictor(plan, at::kCPU);
    OpenCounter opened(options.input);
    jpeg_decodes = 0;
    const auto sample = predictor.load(options.input);
    EXPECT_EQ(opened.count(), 1);
    EXPECT_EQ(jpeg_decodes, decodes);
    EXPECT_EQ(sample.raw_size, cv::Size(260, 300));
    EXPECT_EQ(sample.original.empty(), !draw);
    if (!draw) return;
    cv::Mat whole = cv::imread(options.input);
    cv::cvtColor(whole, whole, cv::COLOR_BGR2RGB);
    EXPECT_EQ(cv::norm(sample.original, whole, cv::NORM_INF), 0);
  };
  for (const bool draw : {false, true}) {
    expect("once.jpg", 32, true, draw, draw ? 2 : 1);  // at 1/8 of its size; drawn in all of it
    expect("once.jpg", 200, true, draw, 1);            // no smaller one will do
    expect("once.jpg", 32, false, draw, 1);
    expect("once.png", 32, true, draw, 0);
  }
}

cv::Mat noise_of(int side) {
  cv::Mat picture(side, side, CV_8UC3);
  cv::RNG(5).fill(picture, cv::RNG::UNIFORM, 0, 256);
  return picture;
}

/// (1, 3, H, W): the values of a BGR picture as RGB, from -1 to 1.
at::Tensor network_input(const cv::Mat& picture) {
  at::Tensor input = at::empty({1, 3, picture.rows, picture.cols});
  for (int row = 0; row < picture.rows; ++row) {
    for (int column = 0; column < picture.cols; ++column) {
      for (int c = 0; c < 3; ++c) {
        input[0][c][row][column] = picture.at<cv::Vec3b>(row, column)[2 - c] / 127.5 - 1;
      }
    }
  }
  return input;
}

/// `line`: of cls_results.txt, for the one picture that gives `input`.
void expect_result(Model& model, const at::Tensor& input, const std::string& line) {
  model.eval();
  const at::NoGradGuard no_grad;
  const auto expected = at::softmax(model.forward(input), 1)[0];
  const auto list = nlohmann::json::parse(line.substr(line.find('\t') + 1));
  ASSERT_EQ(list.size(), 3U);
  for (const auto& one : list) {
    EXPECT_NEAR(one["probability"].get<double>(), expected[one["class"].get<int>()].item<double>(),
                1e-4);
  }
}

// Weights that depend on the input: a picture of a data set's size gives the result of evaluation.
TEST_F(PredictProgram, AClassifierSeesWhatEvaluationSees) {
  const Config config = load_config(*folder_ / "cls.yaml");
  auto model = make_model(config.model, 7);
  save_ckpt(*folder_ / "seeing.ckpt", *model);
  fs::create_directories(*folder_ / "seen");
  cv::imwrite((*folder_ / "seen/noise.png").string(), noise_of(32));
  ASSERT_EQ(predict("-c cls.yaml --cls seeing.ckpt --input seen --output noise"), 0)
      << text_of("stderr.txt");
  expect_result(*model, network_input(noise_of(32)), text_of("noise/cls_results.txt"));
  // A larger one is averaged, and cut by the pipeline of pictures.
  cv::imwrite((*folder_ / "large_noise.png").string(), noise_of(64));
  ASSERT_EQ(
      predict("-c cls.yaml --cls seeing.ckpt --input large_noise.png --output cut "
              "-o 'eval.dataset.transform_pipeline=[{CenterCrop: {size: 24}}, "
              "{NormalizeImage: {mean: [127.5, 127.5, 127.5], std: [127.5, 127.5, 127.5]}}]'"),
      0)
      << text_of("stderr.txt");
  cv::Mat small;
  cv::resize(noise_of(64), small, {32, 32}, 0, 0, cv::INTER_AREA);
  expect_result(*model, network_input(small(cv::Rect(4, 4, 24, 24))),
                text_of("cut/cls_results.txt"));
}

TEST_F(PredictProgram, AGreyPictureHasTheChannelsOfItsNetwork) {
  const std::string path = (*folder_ / "grey_noise.png").string();
  cv::imwrite(path, noise_of(64));
  cv::Mat small, grey;
  cv::resize(noise_of(64), small, {28, 28}, 0, 0, cv::INTER_AREA);
  cv::cvtColor(small, grey, cv::COLOR_BGR2GRAY);
  grey = grey(cv::Rect(4, 4, 20, 20));
  for (const int channels : {1, 3}) {
    SCOPED_TRACE(channels);
    const std::string numbers = channels == 1 ? "[127.5]" : "[127.5, 127.5, 127.5]";
    const std::string data =
        "{type: MnistDataset, data_dir: d, channels: " + std::to_string(channels) +
        ", transform_pipeline: [{CenterCrop: {size: 20}}, {NormalizeImage: "
        "{mean: " +
        numbers + ", std: " + numbers + "}}]}";
    PredictOptions options;
    options.input = path;
    options.cls = {(*folder_ / "cls.yaml").string(), (*folder_ / "cls.ckpt").string()};
    options.overrides = {"train.dataset=" + data, "eval.dataset=" + data};
    const cv::Mat image = Predictor(plan_prediction(options), at::kCPU).load(path).image;
    ASSERT_EQ(image.dims, 3);
    ASSERT_EQ(image.size[0], channels);
    ASSERT_EQ(image.total(), static_cast<size_t>(channels) * 20 * 20);
    for (int at = 0; at < channels * 20 * 20; ++at) {
      const int row = at / 20 % 20, column = at % 20;
      ASSERT_NEAR(image.ptr<float>()[at], grey.at<uint8_t>(row, column) / 127.5 - 1, 1e-6) << at;
    }
  }
}

// The picture is (200, 99, 9) everywhere, so the network gets (200, 99, 9) / 127.5 - 1.
constexpr auto kOwnLine =
    "a.png\t[{\"label\": \"circle\", \"class\": 0, \"probability\": 0.758965}, "
    "{\"label\": \"ring\", \"class\": 1, \"probability\": 0.235881}, "
    "{\"label\": \"square\", \"class\": 2, \"probability\": 0.005154}]\n";

TEST_F(PredictProgram, KnowsANetworkOfAPlugin) {
  const std::string args = "-c own.yaml --cls own.safetensors --input pictures/a.png --output ";
  ASSERT_EQ(predict(plugin() + args + "own"), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("own/cls_results.txt"), kOwnLine);
  ASSERT_EQ(predict(plugin() + args + "own_by_two", 2), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("own_by_two/cls_results.txt"), kOwnLine);
  ASSERT_EQ(run("mean_colour --predict " + args + "own_program"), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("own_program/cls_results.txt"), kOwnLine);
}

TEST_F(PredictProgram, ADataSetOfAPluginNeedsTheTransformsOfPredict) {
  const std::string args =
      plugin() + "-c own_data.yaml --cls own.safetensors --input pictures/a.png --output own_data ";
  ASSERT_EQ(predict(args), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("own_data/cls_results.txt"), kOwnLine);
  EXPECT_EQ(predict(args + "-o predict.dataset.transform_pipeline=[]"), 2);
  EXPECT_EQ(text_of("stderr.txt"),
            "lockstep predict: error: to predict after training on 'black_pictures', the "
            "configuration needs a section predict with a dataset.transform_pipeline: what makes "
            "the network's input of a picture\n");
}

TEST_F(PredictProgram, AnOwnTransformMayRefuseAPicture) {
  const auto with = [](const std::string& item) {
    return plugin() +
           "-c own_data.yaml --cls own.safetensors --input pictures --output refused "
           "-o 'predict.dataset.transform_pipeline=[{" +
           item + ": }, {Resize: {size: [8, 8]}}, {NormalizeImage: }]'";
  };
  ASSERT_EQ(predict(with("Landscape")), 0) << text_of("stderr.txt");
  const std::string said = text_of("stderr.txt");
  EXPECT_EQ(count_in(said, "pictures/b.jpg: Landscape: it is upright\n"), 1U) << said;
  EXPECT_EQ(count_in(said, "2 pictures in refused/cls_results.txt; 2 could not be used"), 1U)
      << said;
  EXPECT_EQ(count_in(text_of("refused/cls_results.txt"), "a.png\t"), 2U);
  EXPECT_EQ(predict(with("Failing")), 1);
  const std::string failure = text_of("stderr.txt");
  EXPECT_EQ(count_in(failure, "lockstep predict: error: pictures/"), 1U) << failure;
  EXPECT_EQ(count_in(failure, ": the transform Failing failed: no such row\n"), 1U) << failure;
}

TEST_F(PredictProgram, AnOwnTransformMayRefuseARegion) {
  fs::create_directories(*folder_ / "regions");
  save("regions/a.png", 80, 48);
  save("regions/b.png", 60, 80);  // not so high that its region is turned
  const auto with = [](const std::string& item) {
    const std::string resize = "      - RecResizeNormForInfer";
    const std::string yaml = std::regex_replace(testing::rec_yaml(), std::regex(resize),
                                                "      - " + item + ":\n" + resize);
    write_file_atomically(*folder_ / "own_rec.yaml", std::string_view(yaml));
    return plugin() +
           "-c det.yaml --det det.ckpt --rec own_rec.yaml rec.ckpt --input regions --output read";
  };
  for (const int ranks : {1, 2}) {  // the second reads b.png
    ASSERT_EQ(predict(with("Landscape"), ranks), 0) << text_of("stderr.txt");
    EXPECT_EQ(text_of("read/system_results.txt"),
              "a.png\t[{\"transcription\": \"q\", \"points\": [[0, 0], [79, 0], [79, 47], [0, "
              "47]]}]\nb.png\t[]\n");
    const std::string said = text_of("stderr.txt");
    EXPECT_EQ(count_in(said,
                       "regions/b.png: region [[0, 0], [59, 0], [59, 79], [0, 79]]: "
                       "Landscape: it is upright\n"),
              1U)
        << said;
    EXPECT_EQ(count_in(said, "2 pictures in read/system_results.txt; 1 region could not be used"),
              1U)
        << said;
  }
  EXPECT_EQ(predict(with("Failing")), 1);
  EXPECT_EQ(text_of("stderr.txt"),
            "lockstep predict: error: regions/a.png: region [[0, 0], [79, 0], [79, 47], [0, 47]]: "
            "the transform Failing failed: no such row\n");
  fs::remove(*folder_ / "regions/a.png");
  EXPECT_EQ(predict(with("Landscape")), 2);
  EXPECT_EQ(count_in(text_of("stderr.txt"),
                     "lockstep predict: error: no region of text in regions "
                     "could be used, of 1 that were found\n"),
            1U)
      << text_of("stderr.txt");
}

TEST_F(PredictProgram, AnOwnTransformIsForANetworkOfSmallImagesToo) {
  const auto with = [](const std::string& item) {
    return plugin() +
           "-c own.yaml --cls own.safetensors --input pictures/a.png --output small "
           "-o 'eval.dataset.transform_pipeline=[{" +
           item + ": }, {NormalizeImage: {mean: [0, 0, 0], std: [1, 1, 1]}}]'";
  };
  ASSERT_EQ(predict(with("Black")), 0) << text_of("stderr.txt");
  EXPECT_EQ(count_in(text_of("small/cls_results.txt"),  // the bias alone: softmax of 0, 2, 1
                     "\"ring\", \"class\": 1, \"probability\": 0.665241}"),
            1U)
      << text_of("small/cls_results.txt");
  EXPECT_EQ(predict(with("Failing")), 1);
  EXPECT_EQ(text_of("stderr.txt"),
            "lockstep predict: error: pictures/a.png: the transform Failing failed: no such row\n");
}

TEST_F(PredictProgram, SaysWhatAnOwnNetworkLacks) {
  const std::string args = "-c own.yaml --cls own.safetensors --input pictures/a.png --output no ";
  const auto refusal = [&](const std::string& words) {
    EXPECT_EQ(predict(words), 2);
    const std::string said = text_of("stderr.txt");
    EXPECT_EQ(count_in(said, "\n"), 1U) << said;
    return said;
  };
  const std::string unknown = refusal(args);
  EXPECT_EQ(count_in(unknown, "must be one of resnet18, "), 1U) << unknown;
  EXPECT_EQ(count_in(unknown, "not 'mean_colour'; --plugin FILE adds networks of one's own"), 1U)
      << unknown;
  EXPECT_EQ(refusal(plugin() + args + "-o model.network.outputs=2"),
            "lockstep predict: error: the network has 2 outputs; to predict, it needs one\n");
  EXPECT_EQ(
      refusal(plugin() + args + "-o model.network.by_name=True"),
      "lockstep predict: error: no tensor is named 'picture': the given ones have no names\n");
  EXPECT_EQ(refusal(plugin() + args + "-o model.head.num_classes=0"),
            "lockstep predict: error: model.head.num_classes is missing: to predict, it is "
            "needed\n");
  const at::Tensor weight = at::zeros({4, 3}), bias = at::zeros({4});
  save_tensors(*folder_ / "own4.safetensors", {{"layer.weight", weight}, {"layer.bias", bias}});
  EXPECT_EQ(refusal(plugin() + "-c own.yaml --cls own4.safetensors --input pictures/a.png "
                               "--output no -o model.network.more_classes=1"),
            "lockstep predict: error: the network's output for 1 pictures has the shape [1, 4], "
            "not [1, 3]: a score for each of model.head.num_classes\n");
}

// A run that ends early leaves its lines so far, and never a partial result file.
TEST_F(PredictProgram, ARunThatEndsEarlyLeavesItsLines) {
  fs::create_directories(*folder_ / "two");
  save("two/a.png", 80, 48);
  save("two/b.png", 60, 100);
  fs::create_directories(*folder_ / "early/b_det_res.png/in_the_way");
  EXPECT_EQ(predict("-c det.yaml --det det.ckpt --input two --output early"), 1)
      << text_of("stderr.txt");
  EXPECT_FALSE(fs::exists(*folder_ / "early/det_results.txt"));
  EXPECT_EQ(text_of("early/det_results.txt.partial"),
            "a.png\t[[[0, 0], [79, 0], [79, 47], [0, 47]]]\n");
  fs::remove_all(*folder_ / "early/b_det_res.png");
  ASSERT_EQ(predict("-c det.yaml --det det.ckpt --input two --output early"), 0);
  EXPECT_EQ(count_in(text_of("early/det_results.txt"), "\n"), 2U);
  EXPECT_FALSE(fs::exists(*folder_ / "early/det_results.txt.partial"));
}

TEST_F(PredictProgram, BatchesOfPicturesOfOneShapeGiveTheLinesOfSinglePictures) {
  fs::create_directories(*folder_ / "many");
  for (int i = 0; i < 7; ++i) save("many/" + std::to_string(i) + ".png", i < 5 ? 80 : 60, 48);
  const std::string args = "-c det.yaml --det det.ckpt --input many ";
  ASSERT_EQ(predict(args + "--output singly"), 0) << text_of("stderr.txt");
  ASSERT_EQ(predict(args + "--output batched --no-draw -o eval.loader.batch_size=3 "
                           "eval.loader.num_workers=4"),
            0)
      << text_of("stderr.txt");
  EXPECT_EQ(text_of("singly/det_results.txt"), text_of("batched/det_results.txt"));
  EXPECT_EQ(count_in(text_of("batched/det_results.txt"), "\n"), 7U);
  EXPECT_TRUE(fs::exists(*folder_ / "singly/0_det_res.png"));
  EXPECT_FALSE(fs::exists(*folder_ / "batched/0_det_res.png"));
}

TEST_F(PredictProgram, SaysWhatIsWrongInOneLineAndWritesNothing) {
  EXPECT_EQ(predict("-c det.yaml --det det.ckpt --input bad --output nothing"), 2);
  EXPECT_EQ(count_in(text_of("stderr.txt"), "none of the 2 pictures of bad could be used"), 1U);
  EXPECT_FALSE(fs::exists(*folder_ / "nothing/det_results.txt"));
  EXPECT_EQ(predict("-c det.yaml --det rec.ckpt --input pictures --output nothing"), 2);
  EXPECT_EQ(count_in(text_of("stderr.txt"), "rec.ckpt"), 1U) << text_of("stderr.txt");
  EXPECT_EQ(predict("-c det.yaml --det det.ckpt --input none --output nothing"), 2);
  EXPECT_EQ(count_in(text_of("stderr.txt"), "none does not exist"), 1U);
}

}  // namespace
}  // namespace lockstep
