// A dictionary in a file against the network trained with it.

#include "lockstep/train/config/dictionaries.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lockstep/base/file.h"
#include "lockstep/error.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/yaml_reader.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

/// DICT is a file, CLASSES a number. The tests depend on line numbers.
constexpr auto kWithDictionary = R"(model:
  type: rec
  backbone: {name: rec_vgg7}
  neck: {name: RNNEncoder, hidden_size: 8}
  head:
    name: CTCHead
    out_channels: 5
postprocess:
  name: RecCTCLabelDecode
  character_dict_path: &dict DICT
metric: {name: RecMetric, character_dict_path: *dict}
loss: {name: CTCLoss, pred_seq_len: 24, max_label_len: 23}
train:
  ckpt_save_dir: out
  dataset: &data
    type: LMDBDataset
    data_dir: a
    transform_pipeline:
      - DecodeImage:
      - RecCTCLabelEncode: {character_dict_path: *dict}
      - RecResizeImg: {image_shape: [32, 100]}
      - ToCHWImage:
    output_columns: [image, text_seq]
  loader: {batch_size: 2}
)";

class Dictionaries : public ::testing::Test {
 protected:
  /// The error of the configuration, with `file` of the test's folder as DICT.
  std::string fault(const std::string& file, const std::vector<std::string>& overrides = {}) {
    std::string text = kWithDictionary;
    text.replace(text.find("DICT"), 4, path(file));
    Node tree = parse_yaml(text, "c.yaml");
    apply_overrides(tree, overrides);
    const Config config = read_config(std::move(tree));
    try {
      check_dictionaries(config);
    } catch (const Error& error) {
      code_ = error.code();
      return error.what();
    }
    return "";
  }
  std::string path(const std::string& file) const { return (folder_ / file).string(); }
  void write(const std::string& file, std::string_view bytes) {
    write_file_atomically(folder_ / file, bytes);
  }

  TempFolder folder_;
  ErrorCode code_{};
};

TEST_F(Dictionaries, TheHeadTellsApartWhatTheFileHasAndTheBlank) {
  write("four", "a\nb\nc\n \n");
  EXPECT_EQ(fault("four"), "");
  EXPECT_EQ(fault("four", {"model.head.out_channels=4"}),
            fmt::format("-o model.head.out_channels=4: model.head.out_channels must be 5, not 4: "
                        "{} has 4 characters, and a blank",
                        path("four")));
  EXPECT_EQ(code_, ErrorCode::kInvalidArgument);
  write("three", "a\r\nb\r\nc");
  EXPECT_EQ(fault("three"), fmt::format("c.yaml:7: model.head.out_channels must be 4, not 5: {} "
                                        "has 3 characters, and a blank",
                                        path("three")));
}

TEST_F(Dictionaries, ASpaceCountsWhereTheFileLacksIt) {
  const std::vector<std::string> space = {
      "postprocess.use_space_char=True",
      "train.dataset.transform_pipeline=[DecodeImage: , RecCTCLabelEncode: {character_dict_path: " +
          path("d") +
          ", use_space_char: True}, RecResizeImg: {image_shape: [32, 100]}, "
          "ToCHWImage: ]"};
  write("d", "a\nb\nc\nd\n");
  EXPECT_EQ(fault("d", space),
            fmt::format("c.yaml:7: model.head.out_channels must be 6, not 5: {} has 4 characters "
                        "and a space, and a blank",
                        path("d")));
  write("d", "a\nb\n \nd\n");
  EXPECT_EQ(fault("d", space), "");
}

TEST_F(Dictionaries, AFileThatIsNotThereOrBrokenIsNamedWithItsKey) {
  const std::string where = "c.yaml:10: postprocess.character_dict_path: ";
  EXPECT_EQ(fault("none"), where + path("none") + ": no such file");
  EXPECT_EQ(code_, ErrorCode::kNotFound);
  write("twice", "a\nb\na\n");
  EXPECT_EQ(fault("twice"),
            where + path("twice") + ":3: 'a' stands on line 1 already; a character has one class");
  EXPECT_EQ(code_, ErrorCode::kCorrupt);
}

TEST_F(Dictionaries, ThoseOfTheMetricAndOfFiltersAreReadWhereTheyAreUsed) {
  write("four", "a\nb\nc\nd\n");
  const std::string metric = "metric.character_dict_path=" + path("none");
  EXPECT_EQ(fault("four", {metric}),
            fmt::format("-o {}: {}: no such file", metric + ": metric.character_dict_path",
                        path("none")));
  EXPECT_EQ(fault("four", {metric, "metric.filter_ood=False"}), "");
  const std::string filter = "train.dataset.character_dict_path=" + path("none");
  EXPECT_EQ(fault("four", {filter}), "");
  EXPECT_NE(fault("four", {filter, "train.dataset.filter_zero_text_image=True"})
                .find("train.dataset.character_dict_path: "),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
