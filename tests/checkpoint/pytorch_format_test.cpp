// Hand-made archives and pickles; weights_test.cpp reads the output of torch.save.
#include "lockstep/checkpoint/pytorch_format.h"
#include "lockstep/base/crc32.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/checkpoint/pickle.h"
#include "lockstep/checkpoint/weight_table.h"
#include "tests/checkpoint/zip_file.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using namespace std::string_literals;

std::string pickled(const std::string& value) {
  return "X"s + static_cast<char>(value.size()) + "\0\0\0"s + value;
}

std::string pickled(int value) {
  return "K"s + static_cast<char>(value);
}

/// A call of _rebuild_tensor_v2 on storage "0" of floats.
std::string pickled_tensor(int offset, const std::vector<int>& sizes,
                           const std::vector<int>& strides) {
  std::string code = "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled("storage") +
                     "ctorch\nFloatStorage\n" + pickled("0") + pickled("cpu") + pickled(4) + "tQ" +
                     pickled(offset) + "(";
  for (const int size : sizes) code += pickled(size);
  code += "t(";
  for (const int stride : strides) code += pickled(stride);
  return code + "t\x89" + "ccollections\nOrderedDict\n)RtR";
}

std::string pickled_dict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string code = "}(";
  for (const auto& [key, value] : entries) code += pickled(key) + value;
  return code + "u";
}

std::string archive(const std::string& code) {
  return zip_file({{"a/data.pkl", "\x80\x02" + code + "."}, {"a/data/0", std::string(16, 'x')}});
}

/// The format before 1.6, with storage "0" of `elements` floats, of which `bytes` are there.
std::string old_file(const std::string& code, int elements = 4, size_t bytes = 16) {
  std::string file = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s;
  file += "\x80\x02M\xe9\x03."s;
  file += "\x80\x02}(" + pickled("little_endian") + "\x88u.";
  file += "\x80\x02" + code + ".";
  file += "\x80\x02](" + pickled("0") + "e.";
  put_number(file, static_cast<uint64_t>(elements), 8);
  return file + std::string(bytes, 'x');
}

WeightTable parse_pth(const std::string& bytes) {
  return parse_pytorch(MemoryBytes("x.pth", bytes));
}

std::string pth_fault(const std::string& bytes) {
  const Error error = error_of([&] { parse_pth(bytes); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  return error.what();
}

TEST(PyTorchFormat, FindsTensorsWithTheirStrides) {
  const std::string file = archive(pickled_dict({{"epoch", pickled(3)},
                                                 {"w", pickled_tensor(0, {2, 2}, {1, 2})},
                                                 {"b", pickled_tensor(3, {1}, {1})}}));
  const auto weights = parse_pth(file).weights;
  ASSERT_EQ(weights.size(), 2U);
  EXPECT_EQ(weights[0].name, "w");
  EXPECT_EQ(weights[0].strides, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(weights[0].pieces.at(0).bytes, 16U);
  EXPECT_EQ(weights[1].pieces.at(0).bytes, 4U);
  EXPECT_EQ(weights[1].pieces.at(0).offset, weights[0].pieces.at(0).offset + 12);
  EXPECT_EQ(file.substr(weights[0].pieces[0].offset, 16), std::string(16, 'x'));
}

TEST(PyTorchFormat, LooksIntoTheUsualEntries) {
  const auto weights =
      parse_pth(archive(pickled_dict(
                    {{"args", "cargparse\nNamespace\n)\x81}b"},
                     {"state_dict", pickled_dict({{"w", pickled_tensor(0, {4}, {1})}})}})))
          .weights;
  ASSERT_EQ(weights.size(), 1U);
  EXPECT_EQ(weights[0].name, "w");
}

/// A dict with tensors of these names.
std::string pickled_state(const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const std::string& name : names) entries.emplace_back(name, pickled_tensor(0, {4}, {1}));
  return pickled_dict(entries);
}

/// The path of the dict of `code` that is taken where these names are wanted.
std::string taken_dict(const std::string& code, const std::vector<std::string>& wanted) {
  const std::string bytes = archive(code);
  const auto count = [&](const std::vector<NamedShape>& tensors) {
    return static_cast<size_t>(std::count_if(tensors.begin(), tensors.end(), [&](const auto& one) {
      return std::find(wanted.begin(), wanted.end(), one.name) != wanted.end();
    }));
  };
  return parse_pytorch(MemoryBytes("x.pth", bytes), count).dict;
}

TEST(PyTorchFormat, TakesTheDictWithMostWantedNames) {
  const std::string general =
      pickled_dict({{"epoch", pickled(1)},
                    {"model_state_dict", pickled_state({"w", "b"})},
                    {"optimizer_state_dict", pickled_dict({{"state", pickled_state({"step"})}})},
                    {"loss", pickled_tensor(0, {1}, {1})}});
  EXPECT_EQ(taken_dict(general, {"w", "b"}), "model_state_dict");
  EXPECT_EQ(taken_dict(general, {"loss"}), "");
  EXPECT_EQ(taken_dict(general, {"step"}), "optimizer_state_dict.state");
  const WeightTable table = parse_pth(archive(general));  // nothing is wanted: the most tensors
  EXPECT_EQ(table.dict, "model_state_dict");
  EXPECT_EQ(table.other_dicts, std::vector<std::string>{"optimizer_state_dict.state"});
  const std::string gan = pickled_dict(
      {{"generator", pickled_state({"g", "h", "i"})}, {"discriminator", pickled_state({"d"})}});
  EXPECT_EQ(taken_dict(gan, {"d"}), "discriminator");
}

TEST(PyTorchFormat, OfEqualDictsTheUsualNamesComeFirst) {
  const auto two = [](const std::string& first, const std::string& second) {
    return taken_dict(pickled_dict({{first, pickled_state({"w"})}, {second, pickled_state({"w"})}}),
                      {"w"});
  };
  EXPECT_EQ(two("model_ema", "model"), "model");
  EXPECT_EQ(two("model", "state_dict"), "state_dict");
  EXPECT_EQ(two("teacher", "model_ema"), "model_ema");
  EXPECT_EQ(two("b", "a"), "b") << "the file's order";
  EXPECT_EQ(two("optimizer", "module"), "module");
  const std::string inner = pickled_dict({{"inner", pickled_state({"w"})}});
  EXPECT_EQ(taken_dict(pickled_dict({{"weights", inner}}), {"w"}), "weights.inner");
  EXPECT_EQ(taken_dict(pickled_dict({{"w", pickled_tensor(0, {4}, {1})}, {"model", inner}}), {"w"}),
            "");
}

TEST(PyTorchFormat, AnOptimizersMomentsComeLast) {
  const std::string moments = pickled_dict({{"exp_avg", pickled_state({"w", "b"})}});
  const std::string code =
      pickled_dict({{"optimizer", moments}, {"module", pickled_state({"w", "b"})}});
  EXPECT_EQ(taken_dict(code, {"w", "b"}), "module");
  EXPECT_EQ(parse_pth(archive(code)).dict, "module");
}

TEST(PyTorchFormat, TheShapesOfADictAreKnownForTheChoice) {
  const std::string bytes = archive(
      pickled_dict({{"teacher", pickled_dict({{"w", pickled_tensor(0, {4}, {1})}})},
                    {"student", pickled_dict({{"w", pickled_tensor(0, {2, 1}, {1, 1})}})}}));
  const auto count = [](const std::vector<NamedShape>& tensors) {
    return static_cast<size_t>(std::count_if(tensors.begin(), tensors.end(), [](const auto& one) {
      return one.shape == std::vector<uint64_t>{2, 1};
    }));
  };
  const WeightTable table = parse_pytorch(MemoryBytes("x.pth", bytes), count);
  EXPECT_EQ(table.dict, "student");
  EXPECT_TRUE(table.other_dicts.empty());
}

TEST(PyTorchFormat, TensorsOfOtherKindsAreNamedAndNotRead) {
  const auto replaced = [](const std::string& from, const std::string& to) {
    std::string tensor = pickled_tensor(0, {2}, {1});
    return tensor.replace(tensor.find(from), from.size(), to);
  };
  std::string complex_pair = pickled_tensor(0, {2}, {1});
  complex_pair.replace(complex_pair.find("Float"), 5, "ComplexFloat");
  const auto weights =
      parse_pth(archive(pickled_dict({{"q", replaced("_rebuild_tensor_v2", "_rebuild_qtensor")},
                                      {"s", replaced("tensor_v2", "sparse_tensor")},
                                      {"n", replaced("tensor_v2", "nested_tensor")},
                                      {"d", replaced("FloatStorage", "ComplexDoubleStorage")},
                                      {"x", replaced("FloatStorage", "OtherStorage")},
                                      {"c", complex_pair},
                                      {"w", pickled_tensor(0, {2}, {1})}})))
          .weights;
  ASSERT_EQ(weights.size(), 7U);
  EXPECT_EQ(weights[0].unread, "is quantized, which is not read");
  EXPECT_EQ(weights[1].unread, "is sparse, which is not read");
  EXPECT_EQ(weights[2].unread, "is of a kind that is not read");
  EXPECT_EQ(weights[3].unread, "is complex, of two doubles, which is not read");
  EXPECT_EQ(weights[4].unread, "is of a kind that is not read");
  for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(weights[i].pieces.empty()) << i;
  EXPECT_EQ(weights[5].type, StoredType::kC64);
  EXPECT_EQ(weights[6].unread, "");
}

TEST(PyTorchFormat, ChecksumsOfMembersAreHandedOnAndThatOfThePickleIsChecked) {
  const std::string code = "\x80\x02" + pickled_dict({{"w", pickled_tensor(1, {2}, {1})}}) + ".";
  const std::string bytes(16, 'x');
  std::string file = zip_file({{"a/data.pkl", code}, {"a/data/0", bytes}}, 0, /*has_sums=*/true);
  const WeightPiece piece = parse_pth(file).weights.at(0).pieces.at(0);
  ASSERT_TRUE(piece.member);
  EXPECT_EQ(piece.member->crc32, crc32_of(bytes));
  EXPECT_EQ(piece.member->bytes, 16U);
  EXPECT_EQ(piece.member->offset + 4, piece.offset);
  file[file.find("_rebuild")] = 'X';
  EXPECT_EQ(pth_fault(file),
            "x.pth: not a readable .pth file: the bytes of its pickle are not those saved (CRC-32 "
            "differs)");
  EXPECT_FALSE(parse_pth(archive(pickled_dict({{"w", pickled_tensor(0, {4}, {1})}})))
                   .weights.at(0)
                   .pieces.at(0)
                   .member);
}

TEST(PyTorchFormat, TorchScriptIsNamed) {
  for (const auto& members : std::vector<std::vector<std::pair<std::string, std::string>>>{
           {{"a/code/__torch__.py", "x"}, {"a/data.pkl", "x"}}, {{"a/constants.pkl", "x"}}}) {
    EXPECT_EQ(pth_fault(zip_file(members, 8)),
              "x.pth: is TorchScript, not a state_dict; in Python: "
              "torch.save(torch.jit.load(FILE).state_dict(), NEW_FILE)");
  }
}

TEST(PyTorchFormat, ReadsFilesFromBefore16) {
  const std::string file = old_file(
      pickled_dict({{"w", pickled_tensor(0, {2, 2}, {1, 2})}, {"b", pickled_tensor(3, {1}, {1})}}));
  const auto weights = parse_pth(file).weights;
  ASSERT_EQ(weights.size(), 2U);
  EXPECT_EQ(weights[0].pieces.at(0).offset, file.size() - 16);
  EXPECT_EQ(weights[0].pieces.at(0).bytes, 16U);
  EXPECT_EQ(weights[1].pieces.at(0).offset, file.size() - 4);
  EXPECT_EQ(read_weight_table(MemoryBytes("x", file)).format, WeightFormat::kPyTorch);
}

TEST(PyTorchFormat, FilesFromBefore16ThatAreCutOffAreRefused) {
  const std::string code = pickled_dict({{"w", pickled_tensor(0, {4}, {1})}});
  const std::string whole = old_file(code);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) pth_fault(whole.substr(0, bytes));
  EXPECT_EQ(pth_fault(old_file(code, 5)), "x.pth: it was cut off within a storage");
  EXPECT_EQ(pth_fault(old_file(code, 3)), "x.pth: tensor 'w' is larger than its storage");
  std::string other = whole;
  other[17] = '\x7f';
  EXPECT_NE(pth_fault(other).find("has operation 0x7f"), std::string::npos);
  other = whole;
  other[18] = '\x01';
  EXPECT_EQ(pth_fault(other), "x.pth: an unknown version of PyTorch's format before 1.6");
  other = whole;
  other[other.find('\x88')] = '\x89';
  EXPECT_EQ(pth_fault(other), "x.pth: its numbers are not little-endian");
}

// Python 2 pickled an OrderedDict as the call with a list of pairs; PyTorch before 0.4 knew
// _rebuild_tensor.
TEST(PyTorchFormat, ReadsWhatPython2Saved) {
  std::string tensor = pickled_tensor(0, {4}, {1});
  tensor.replace(tensor.find("_v2"), 3, "");
  const std::string pair = "](" + pickled("w") + tensor + "e";
  const auto weights =
      parse_pth(old_file("ccollections\nOrderedDict\n](" + pair + "e\x85R")).weights;
  ASSERT_EQ(weights.size(), 1U);
  EXPECT_EQ(weights[0].name, "w");
}

// A stored list of pairs that is called again and again would be copied each time.
TEST(Pickle, DictsOfOneListDoNotGrow) {
  std::string code = "](";
  for (int i = 0; i < 100'000; ++i)
    code +=
        "](K\x01K\x02"
        "e";
  code +=
      "eq\x01"
      "ccollections\nOrderedDict\nq\x02";
  for (int i = 0; i < 100; ++i) code += "h\x02h\x01\x85R0";
  EXPECT_NE(std::string(error_of([&] { read_pickle(code + ".", "x"); }).what())
                .find("has too many values"),
            std::string::npos);
  // The same with a list that is no list of pairs, which only its end shows.
  const size_t end = code.find(
      "eq\x01"
      "ccoll");
  ASSERT_NE(end, std::string::npos);
  code.insert(end, "N");
  EXPECT_NE(std::string(error_of([&] { read_pickle(code + ".", "x"); }).what())
                .find("has too many values"),
            std::string::npos);
}

TEST(PyTorchFormat, NothingIsCalled) {
  // In Python this would call os.system("..."); here it is only a description.
  EXPECT_EQ(pth_fault(archive("cos\nsystem\n(" + pickled("touch /tmp/x") + "tR")),
            "x.pth: holds a whole module or another object, not a state_dict; in Python: "
            "torch.save(model.state_dict(), NEW_FILE)");
}

TEST(PyTorchFormat, TensorsBeyondTheirStorageAreRefused) {
  const auto file = [](int offset, const std::vector<int>& sizes, const std::vector<int>& strides) {
    return archive(pickled_dict({{"w", pickled_tensor(offset, sizes, strides)}}));
  };
  EXPECT_EQ(pth_fault(file(0, {5}, {1})), "x.pth: tensor 'w' is larger than its storage");
  EXPECT_EQ(pth_fault(file(0, {2, 2}, {3, 1})), "x.pth: tensor 'w' reaches beyond its storage");
  EXPECT_EQ(pth_fault(file(4, {1}, {1})), "x.pth: tensor 'w' reaches beyond its storage");
  EXPECT_EQ(pth_fault(file(0, {4}, {0})), "x.pth: tensor 'w' reaches beyond its storage");
  EXPECT_EQ(pth_fault(file(0, {4}, {})),
            "x.pth: tensor 'w' has other numbers of sizes and strides");
}

TEST(PyTorchFormat, ArchivesThatAreNoneAreRefused) {
  const std::string whole = archive(pickled_dict({{"w", pickled_tensor(0, {4}, {1})}}));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) pth_fault(whole.substr(0, bytes));
  EXPECT_NE(pth_fault(zip_file({{"a/data.pkl", "x"}}, 8)).find("compressed or encrypted"),
            std::string::npos);
  EXPECT_EQ(pth_fault(zip_file({{"a.txt", "x"}})), "x.pth: a zip archive, but no .pth");
  EXPECT_EQ(pth_fault(zip_file({{"a/byteorder", "big"}})),
            "x.pth: its numbers are not little-endian");
  EXPECT_EQ(pth_fault(archive(pickled_dict({{"w", pickled(1)}}))),
            "x.pth: holds no tensors by name");
}

TEST(Pickle, SaysWhereItBreaks) {
  const auto broken = [](const std::string& code) {
    return std::string(error_of([&] { read_pickle(code, "x.pth"); }).what());
  };
  EXPECT_EQ(broken("\x80\x02K"),
            "x.pth: not a readable .pth file: its pickle is cut off at byte 3");
  EXPECT_NE(broken("\x80\x02R.").find("takes a value that is not there"), std::string::npos);
  EXPECT_NE(broken("K\x01(0.").find("takes a value that is not there"), std::string::npos);
  EXPECT_NE(broken("t.").find("takes a mark that is not there"), std::string::npos);
  EXPECT_NE(broken("h\x05.").find("reads a value that it has not stored"), std::string::npos);
  EXPECT_NE(broken("}(K\x01u.").find("a key without a value"), std::string::npos);
  EXPECT_EQ(broken("ios\nsystem\n."),
            "x.pth: not a readable .pth file: its pickle has operation 0x69, which is not one that "
            "weights need, at byte 0");
  EXPECT_NE(broken("X\xff\xff\xff\xff").find("cut off"), std::string::npos);
}

// A name that consists of a name of a name ... would double with every three bytes of the file.
TEST(Pickle, ANameIsAShortText) {
  const auto named = [](const std::string& module) {
    return read_pickle(
        "X"s + static_cast<char>(module.size()) + "\0\0\0"s + module + "q\x01h\x01\x93.", "x");
  };
  const Pickle good = named("torch");
  EXPECT_EQ(good.values[good.top].text, "torch torch");
  const auto fault = [](const std::string& code) {
    const Error error = error_of([&] { read_pickle(code, "x"); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    return std::string(error.what());
  };
  const std::string twice = "q\x01h\x01\x93";
  EXPECT_NE(fault(pickled("a") + twice + twice + ".").find("a class without a name"),
            std::string::npos);
  EXPECT_NE(fault(pickled(std::string(201, 'a')) + twice + ".").find("a class without a name"),
            std::string::npos);
}

TEST(Pickle, DeepAndCyclicValuesCostNothing) {
  const Pickle deep =
      read_pickle(std::string(1'000'000, '(') + std::string(1'000'000, 't') + ".", "x");
  EXPECT_EQ(deep.values.size(), 1'000'000U);
  const Pickle cycle = read_pickle("]q\x01h\x01"s + "a.", "x");
  EXPECT_EQ(cycle.values[cycle.top].items, (std::vector<uint32_t>{cycle.top}));
}

}  // namespace
}  // namespace lockstep
