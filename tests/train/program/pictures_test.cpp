// Training on pictures in files.

#include "tests/train/program/pictures.h"

#include <algorithm>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// By the list of the configuration, and by one that small images take as pictures.
TEST_F(PicturesProgram, PngFilesTrainToTheBitsOfTheBinaryFiles) {
  const std::vector<std::string> lists = {
      "-o scheduler.num_epochs=2 ",
      "-o scheduler.num_epochs=2 "
      "train.dataset.transform_pipeline=\"[{RandomResizedCrop: {size: 32}}, {ColorJitter: "
      "{brightness: 0.4}}, {RandAugment: }, {NormalizeImage: }, {RandomErasing: }, {CutMix: }]\" "
      "eval.dataset.transform_pipeline=\"[{Resize: {size: 36}}, {CenterCrop: {size: 32}}, "
      "{NormalizeImage: }]\" "};
  write_list(Split::kTrain, "train");
  write_list(Split::kTest, "test");
  for (size_t i = 0; i < lists.size(); ++i) {
    write_file_atomically(folder_ / "c.yaml", std::string_view(kConfig));
    const auto result_in = [&](const std::string& name) {
      return fmt::format("train.ckpt_save_dir={}{}", name, i);
    };
    const auto records = train(lists[i] + result_in("records"), 2);
    ASSERT_EQ(records.status, 0) << records.err;
    configure("    type: ImageListDataset\n    data_dir: png\n    label_file: train.csv\n",
              "    type: ImageListDataset\n    data_dir: png\n    label_file: test.csv\n");
    const auto pictures = train(lists[i] + result_in("png") + " train.loader.num_workers=2", 2);
    ASSERT_EQ(pictures.status, 0) << pictures.err;
    const auto steps = steps_of(fmt::format("records{}", i));
    EXPECT_EQ(steps.size(), 12u);
    EXPECT_EQ(steps_of(fmt::format("png{}", i)), steps) << lists[i];
    EXPECT_EQ(evaluation_of(fmt::format("png{}", i)), evaluation_of(fmt::format("records{}", i)));
  }
  EXPECT_NE(steps_of("records0"), steps_of("records1"));
}

TEST_F(PicturesProgram, MixedAndAugmentedPicturesDoNotDependOnRanksOrThreads) {
  write_class_folders(Split::kAll, "kinds");
  const std::string args =
      "-o scheduler.num_epochs=1 train.max_steps=3 parallel.virtual_ranks=2 "
      "system.val_while_train=False train.dataset.transform_pipeline=";
  const auto expect_same = [&](const std::string& name, const std::string& list) {
    const std::string of_name = args + list + " train.ckpt_save_dir=" + name;
    const auto one = train(of_name + "1 train.loader.num_workers=2");
    ASSERT_EQ(one.status, 0) << one.err;
    const auto two = train(of_name + "2", 2);
    ASSERT_EQ(two.status, 0) << two.err;
    EXPECT_EQ(steps_of(name + "1").size(), 3u);
    EXPECT_EQ(steps_of(name + "2"), steps_of(name + "1"));
  };
  expect_same("records",
              "\"[{RandomCrop: }, {RandAugment: }, {NormalizeImage: }, {RandomErasing: }, "
              "{MixUp: {alpha: 0.4}}]\"");
  expect_same("mixed",
              "\"[{RandomCrop: }, {NormalizeImage: }, {MixUp: {alpha: 0.4}}, {CutMix: }]\"");
  const std::string folder = "    type: ImageFolderDataset\n    data_dir: kinds\n";
  configure(folder, folder);
  expect_same("pictures",
              "\"[{RandAugment: }, {TrivialAugmentWide: }, {NormalizeImage: }, {MixUp: {alpha: "
              "0.4}}, {CutMix: }]\"");
  const auto twice = train(
      "-o train.max_steps=1 train.dataset.transform_pipeline=\"[{NormalizeImage: }, {MixUp: }, "
      "{MixUp: }]\"");
  EXPECT_EQ(twice.status, 2);
  EXPECT_NE(twice.err.find("MixUp may stand in transform_pipeline once"), std::string::npos)
      << twice.err;
}

TEST_F(PicturesProgram, AFolderOfClassesTrainsResumesAndCountsFaults) {
  write_class_folders(Split::kAll, "kinds");
  fs::create_directories(folder_ / "kinds/kind_none");
  configure("    type: ImageFolderDataset\n    data_dir: kinds\n    held_out: 5\n",
            "    type: ImageFolderDataset\n    held_out: 5\n");
  const std::string args = "-o model.head.num_classes=11 scheduler.num_epochs=1 ";
  const auto whole = train(args + "train.ckpt_save_dir=whole");
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_NE(whole.out.find("lockstep.data WARNING - kinds: no picture of 1 class: kind_none"),
            std::string::npos)
      << whole.out;
  const auto begun = train(args + "train.ckpt_save_dir=parts train.max_steps=5");
  ASSERT_EQ(begun.status, 0) << begun.err;
  const auto rest = train(args + "train.ckpt_save_dir=parts model.resume=True");
  ASSERT_EQ(rest.status, 0) << rest.err;
  const auto steps = steps_of("whole");
  EXPECT_EQ(steps.size(), 12u);
  EXPECT_EQ(steps_of("parts"), steps);
  EXPECT_EQ(evaluation_of("parts"), evaluation_of("whole"));

  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "kinds/kind3")) {
    fs::resize_file(entry.path(), 60);
  }
  const auto damaged = train("--eval " + args + "train.ckpt_save_dir=whole");
  ASSERT_EQ(damaged.status, 0) << damaged.err;
  EXPECT_NE(damaged.out.find(" cannot be used: kinds/kind3/"), std::string::npos) << damaged.out;
  const auto replaced = train(args + "train.ckpt_save_dir=replaced system.val_while_train=False");
  ASSERT_EQ(replaced.status, 0) << replaced.err;
  EXPECT_NE(replaced.out.find(") stands in its place"), std::string::npos) << replaced.out;
}

TEST_F(PicturesProgram, CheckWarnsOfOneClassAlone) {
  write_class_folders(Split::kAll, "outer/kinds");
  const std::string folder = "    type: ImageFolderDataset\n    data_dir: outer\n";
  configure(folder, folder);
  const auto checked = train("--check");
  ASSERT_EQ(checked.status, 0) << checked.err;
  EXPECT_NE(checked.err.find("outer: only one class, kinds: the classes are probably in "
                             "outer/kinds, which has the folders kind0, kind1"),
            std::string::npos)
      << checked.err;
}

TEST_F(PicturesProgram, CheckWarnsOfAListOfOneClass) {
  write_list(Split::kTest, "test");
  std::string list = "path,label\n";
  for (int i = 0; i < 20; ++i) list += fmt::format("test/{:05}.png,cat\n", i);
  write_file_atomically(folder_ / "cats.csv", std::string_view(list));
  const std::string cats =
      "    type: ImageListDataset\n    data_dir: png\n    label_file: cats.csv\n";
  configure(cats, cats);
  const auto checked = train("--check");
  ASSERT_EQ(checked.status, 0) << checked.err;
  EXPECT_EQ(text_count(checked.err, "cats.csv: all 20 pictures are of one class, cat\n"), 1)
      << checked.err;
}

TEST_F(PicturesProgram, AFaultOfAListPointsAtItsOwnKey) {
  write_list(Split::kTest, "test");
  write_file_atomically(folder_ / "bad.csv", std::string_view("path,label\na.png\n"));
  configure("    type: ImageListDataset\n    data_dir: png\n    label_file: bad.csv\n",
            "    type: ImageListDataset\n    data_dir: png\n    label_file: test.csv\n");
  const std::string text = bytes("c.yaml");
  const auto key = text.begin() + static_cast<std::ptrdiff_t>(text.find("label_file: bad.csv"));
  const auto line = 1 + std::count(text.begin(), key, '\n');
  const auto refused = train("");
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find(fmt::format("c.yaml:{}: bad.csv:2: 1 fields; allowed: two", line)),
            std::string::npos)
      << refused.err;
}

TEST_F(PicturesProgram, AClassesFileOfItsUserIsNotOverwritten) {
  write_class_folders(Split::kAll, "kinds");
  const std::string folder = "    type: ImageFolderDataset\n    data_dir: kinds\n";
  configure(folder, folder);
  const std::string args = "-o train.max_steps=1 system.val_while_train=False ";
  write_file_atomically(folder_ / "classes.txt", std::string_view("mine\n"));
  for (const std::string check : {"--check ", ""}) {
    const auto refused = train(check + args + "train.ckpt_save_dir=.");
    EXPECT_EQ(refused.status, 2) << refused.out;
    EXPECT_NE(refused.err.find("to ./classes.txt, which has other lines and is of no run"),
              std::string::npos)
        << refused.err;
  }
  EXPECT_EQ(bytes("classes.txt"), "mine\n");
  EXPECT_FALSE(fs::exists(folder_ / "args.yaml"));

  ASSERT_EQ(train(args).status, 0);
  EXPECT_EQ(train("--check " + args).status, 0);
  const auto names = bytes("out/classes.txt");
  EXPECT_EQ(text_count(names, "\n"), 10);
  write_file_atomically(folder_ / "out/classes.txt", std::string_view("renamed\n"));
  const auto resumed = train("-o train.max_steps=2 system.val_while_train=False model.resume=True");
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("WARNING - out/classes.txt had other names of classes than the data "
                             "have now; it is now out/classes.txt.1"),
            std::string::npos)
      << resumed.out;
  EXPECT_EQ(bytes("out/classes.txt.1"), "renamed\n");
  EXPECT_EQ(bytes("out/classes.txt"), names);
}

/// USTAR, whose names are short here.
void add_member(std::string& tar, const std::string& name, const std::string& bytes) {
  std::string header = name;
  header.resize(512);
  header.replace(124, 11, fmt::format("{:011o}", bytes.size()));
  header[156] = '0';
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  header.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<uint8_t>(byte);
  header.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  tar += header + bytes;
  tar.resize((tar.size() + 511) / 512 * 512);
}

class ShardsProgram : public PicturesProgram {
 protected:
  /// The records in their order as lists, and in two shards each: train-0.tar, ...
  void write_shards() const {
    write_list(Split::kTrain, "train");
    write_list(Split::kTest, "test");
    for (const char* name : {"train", "test"}) {
      const Cifar10 data = Cifar10::load(
          folder_ / "data", std::string(name) == "train" ? Split::kTrain : Split::kTest);
      std::string tar;
      for (int64_t i = 0; i < data.size(); ++i) {
        const std::string file = fmt::format("{}/{:05}", name, i);
        add_member(tar, file + ".png", read_file(folder_ / "png" / (file + ".png")));
        add_member(tar, file + ".cls", std::to_string(data.label(i)));
        if (i + 1 != data.size() && i + 1 != data.size() / 3) continue;
        tar.resize(tar.size() + 1024);
        const int shard = i + 1 == data.size() ? 1 : 0;
        write_file_atomically(folder_ / fmt::format("{}-{}.tar", name, shard),
                              std::string_view(tar));
        tar.clear();
      }
    }
  }
  void configure_shards() const {
    configure("    type: WebDataset\n    shards: train-{0..1}.tar\n",
              "    type: WebDataset\n    shards: test-{0..1}.tar\n");
  }
};

TEST_F(ShardsProgram, TrainToTheBitsOfTheirPictures) {
  write_shards();
  const std::string args = "-o scheduler.num_epochs=1 ";
  configure("    type: ImageListDataset\n    data_dir: png\n    label_file: train.csv\n",
            "    type: ImageListDataset\n    data_dir: png\n    label_file: test.csv\n");
  const auto pictures = train(args + "train.ckpt_save_dir=pictures", 2);
  ASSERT_EQ(pictures.status, 0) << pictures.err;
  configure_shards();
  const auto shards = train(args + "train.ckpt_save_dir=shards train.loader.num_workers=2", 2);
  ASSERT_EQ(shards.status, 0) << shards.err;
  EXPECT_EQ(steps_of("pictures").size(), 6u);
  EXPECT_EQ(steps_of("shards"), steps_of("pictures"));
  EXPECT_EQ(evaluation_of("shards"), evaluation_of("pictures"));

  const auto begun = train(args + "train.ckpt_save_dir=parts train.max_steps=2", 2);
  ASSERT_EQ(begun.status, 0) << begun.err;
  const auto rest = train(args + "train.ckpt_save_dir=parts model.resume=True", 2);
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_EQ(steps_of("parts"), steps_of("shards"));
  const std::string changed =
      "training samples have other names, labels, weights or another order than in ";
  EXPECT_EQ(rest.out.find(changed), std::string::npos) << rest.out;

  // The shards change places within an epoch.
  const auto before = train(args + "train.ckpt_save_dir=swapped train.max_steps=2", 2);
  ASSERT_EQ(before.status, 0) << before.err;
  fs::rename(folder_ / "train-0.tar", folder_ / "first.tar");
  fs::rename(folder_ / "train-1.tar", folder_ / "train-0.tar");
  fs::rename(folder_ / "first.tar", folder_ / "train-1.tar");
  const auto swapped = train(args + "train.ckpt_save_dir=swapped model.resume=True", 2);
  ASSERT_EQ(swapped.status, 0) << swapped.err;
  EXPECT_NE(swapped.out.find(changed), std::string::npos) << swapped.out;

  const auto few = train(args + "train.max_steps=1 model.head.num_classes=3");
  EXPECT_EQ(few.status, 2);
  EXPECT_NE(few.err.find("which is no class; allowed: 0 to 2"), std::string::npos) << few.err;
  fs::resize_file(folder_ / "train-1.tar", 5000);
  const auto cut = train(args + "train.max_steps=1");
  EXPECT_EQ(cut.status, 2);
  EXPECT_NE(cut.err.find("train-1.tar: byte "), std::string::npos) << cut.err;
  EXPECT_NE(cut.err.find("cut off"), std::string::npos) << cut.err;
}

// The order over the shards is of the virtual ranks, also of those that go on with another number.
TEST_F(ShardsProgram, OfVirtualRanksTrainAndResumeOnAnyNumberOfRanks) {
  write_shards();
  configure_shards();
  const std::string args =
      "-o scheduler.num_epochs=2 parallel.virtual_ranks=2 train.loader.num_workers=2 ";
  const auto one = train(args + "train.ckpt_save_dir=one");
  ASSERT_EQ(one.status, 0) << one.err;
  const auto two = train(args + "train.ckpt_save_dir=two", 2);
  ASSERT_EQ(two.status, 0) << two.err;
  const auto steps = steps_of("one");
  EXPECT_EQ(steps.size(), 12u);
  EXPECT_EQ(steps_of("two"), steps);
  EXPECT_EQ(evaluation_of("two"), evaluation_of("one"));

  // Within the first epoch, and within the second.
  const auto begun = train(args + "train.ckpt_save_dir=parts train.max_steps=2", 2);
  ASSERT_EQ(begun.status, 0) << begun.err;
  const auto more = train(args + "train.ckpt_save_dir=parts train.max_steps=9 model.resume=True");
  ASSERT_EQ(more.status, 0) << more.err;
  const auto rest = train(args + "train.ckpt_save_dir=parts model.resume=True", 2);
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_EQ(steps_of("parts"), steps);
  EXPECT_EQ(evaluation_of("parts"), evaluation_of("one"));
}

// An order of shards by a buffer is as exact.
TEST_F(ShardsProgram, InTheOrderOfABufferTrainAndResumeOnAnyNumberOfRanks) {
  write_shards();
  configure_shards();
  const std::string args =
      "-o scheduler.num_epochs=2 parallel.virtual_ranks=2 train.loader.num_workers=2 ";
  const std::string buffered = args + "train.dataset.shuffle_buffer=20 ";
  const auto one = train(buffered + "train.ckpt_save_dir=one");
  ASSERT_EQ(one.status, 0) << one.err;
  const auto two = train(buffered + "train.ckpt_save_dir=two", 2);
  ASSERT_EQ(two.status, 0) << two.err;
  const auto steps = steps_of("one");
  EXPECT_EQ(steps.size(), 12u);
  EXPECT_EQ(steps_of("two"), steps);
  EXPECT_EQ(evaluation_of("two"), evaluation_of("one"));
  const auto whole = train(args + "train.ckpt_save_dir=whole");
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_NE(steps_of("whole"), steps) << "over all shards the order is another";

  const auto begun = train(buffered + "train.ckpt_save_dir=parts train.max_steps=2", 2);
  ASSERT_EQ(begun.status, 0) << begun.err;
  const auto more =
      train(buffered + "train.ckpt_save_dir=parts train.max_steps=9 model.resume=True");
  ASSERT_EQ(more.status, 0) << more.err;
  const std::string changed =
      "training samples have other names, labels, weights or another order than in ";
  EXPECT_EQ(more.out.find(changed), std::string::npos) << more.out;
  const auto rest = train(buffered + "train.ckpt_save_dir=parts model.resume=True", 2);
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_EQ(steps_of("parts"), steps);
  EXPECT_EQ(evaluation_of("parts"), evaluation_of("one"));

  // Another buffer within an epoch.
  const auto before = train(buffered + "train.ckpt_save_dir=other train.max_steps=2");
  ASSERT_EQ(before.status, 0) << before.err;
  const auto other = train(args +
                           "train.dataset.shuffle_buffer=21 train.ckpt_save_dir=other "
                           "train.max_steps=3 model.resume=True");
  ASSERT_EQ(other.status, 0) << other.err;
  EXPECT_NE(other.out.find(changed), std::string::npos) << other.out;
}

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

/// MNIST's two files of a part, with drawn digits.
void write_mnist(const fs::path& folder, const std::string& part, uint32_t count) {
  fs::create_directories(folder);
  std::string images = big_endian(0x803) + big_endian(count) + big_endian(28) + big_endian(28);
  std::string labels = big_endian(0x801) + big_endian(count);
  for (uint32_t i = 0; i < count; ++i) {
    labels += static_cast<char>(i % 10);
    for (uint32_t at = 0; at < 784; ++at) images += static_cast<char>(at * (i % 10 + 1) + i);
  }
  write_file_atomically(folder / (part + "-images-idx3-ubyte"), std::string_view(images));
  write_file_atomically(folder / (part + "-labels-idx1-ubyte"), std::string_view(labels));
}

TEST_F(PicturesProgram, SmallImagesOfOtherFilesTrain) {
  write_mnist(folder_ / "mnist", "train", 32);
  write_mnist(folder_ / "mnist", "t10k", 10);
  const std::string mnist =
      "-o train.dataset.type=MnistDataset eval.dataset.type=MnistDataset "
      "train.dataset.data_dir=mnist scheduler.num_epochs=1 parallel.virtual_ranks=2 ";
  for (const int ranks : {1, 2}) {
    const auto done = train(mnist + fmt::format("train.ckpt_save_dir=mnist{}", ranks), ranks);
    ASSERT_EQ(done.status, 0) << done.err;
  }
  EXPECT_EQ(steps_of("mnist1").size(), 2u);
  EXPECT_EQ(steps_of("mnist2"), steps_of("mnist1"));
  EXPECT_EQ(evaluation_of("mnist2"), evaluation_of("mnist1"));

  std::string records;
  for (int i = 0; i < 16; ++i) {
    records += static_cast<char>(i);
    records += static_cast<char>(5 * i);
    records += std::string(3072, static_cast<char>(16 * i));
  }
  fs::create_directories(folder_ / "hundred");
  for (const char* name : {"train.bin", "test.bin"}) {
    write_file_atomically(folder_ / "hundred" / name, std::string_view(records));
  }
  const std::string hundred =
      "-o train.dataset.type=Cifar100Dataset train.dataset.data_dir=hundred "
      "eval.dataset.type=Cifar100Dataset scheduler.num_epochs=1 model.head.num_classes=100 ";
  EXPECT_EQ(train(hundred + "train.ckpt_save_dir=fine").status, 0);
  const auto mixed = train(hundred + "train.dataset.labels=coarse");
  EXPECT_EQ(mixed.status, 2);
  EXPECT_NE(
      mixed.err.find("train.dataset.type is Cifar100Dataset with coarse labels: their classes "
                     "have other numbers"),
      std::string::npos)
      << mixed.err;

  // As pictures, of three channels, which a network of the zoo takes.
  const auto augmented = train(mnist +
                               "train.ckpt_save_dir=augmented train.dataset.transform_pipeline="
                               "\"[{RandAugment: }, {NormalizeImage: }]\"");
  EXPECT_EQ(augmented.status, 0) << augmented.err;
  EXPECT_EQ(steps_of("augmented").size(), 2u);
  const auto small = train("--check " + mnist +
                           "train.dataset.transform_pipeline=\"[{RandomVerticalFlip: }, "
                           "{RandomCrop: {size: 40}}]\"");
  EXPECT_EQ(small.status, 2);
  EXPECT_NE(small.err.find("RandomCrop: size 40 does not fit into a picture of 28 x 28 with "
                           "padding 4"),
            std::string::npos)
      << small.err;

  fs::resize_file(folder_ / "mnist/t10k-labels-idx1-ubyte", 15);
  const auto cut = train(mnist + "train.ckpt_save_dir=cut");
  EXPECT_EQ(cut.status, 2);
  EXPECT_NE(cut.err.find("mnist/t10k-labels-idx1-ubyte: 7 bytes behind its header, which says 10: "
                         "the file is cut short"),
            std::string::npos)
      << cut.err;
}

TEST_F(PicturesProgram, ARankWithOtherPicturesIsRefused) {
  write_class_folders(Split::kTest, "kinds");
  fs::copy(folder_ / "kinds", folder_ / "copy", fs::copy_options::recursive);
  const fs::path first = *fs::directory_iterator(folder_ / "copy/kind3");
  fs::rename(first, first.parent_path() / "renamed.png");
  const std::string folder = "    type: ImageFolderDataset\n    data_dir: ${DATA}\n";
  configure(folder, folder);
  write_file_atomically(
      folder_ / "worker.sh",
      std::string_view("[ $RANK = 0 ] && export DATA=kinds || export DATA=copy; exec \"$@\""));
  const std::string path = fs::path(lockstep_program()).parent_path().string();
  const auto result = run("env PATH=" + path +
                          ":$PATH lockstep run --nproc_per_node 2 -- sh worker.sh lockstep train "
                          "-c c.yaml -o train.max_steps=1");
  EXPECT_EQ(result.status, 2) << result.out << result.err;
  EXPECT_NE(result.err.find("the ranks differ: the training samples of rank 1 have other names, "
                            "labels or weights than those of rank 0"),
            std::string::npos)
      << result.err;
}

TEST_F(PicturesProgram, FaultsOfTheDataAreOneLine) {
  write_class_folders(Split::kTest, "kinds");
  configure("    type: ImageFolderDataset\n    data_dir: kinds\n",
            "    type: ImageFolderDataset\n    data_dir: other\n");
  const auto missing = train("-o train.max_steps=1");
  EXPECT_EQ(missing.status, 2);
  EXPECT_NE(missing.err.find("no folder other"), std::string::npos) << missing.err;
  const auto planned = train("--check");
  EXPECT_EQ(planned.status, 0) << planned.err;
  EXPECT_NE(planned.out.find("to evaluate: "), std::string::npos) << planned.out;

  fs::create_directories(folder_ / "other/kind12");
  const auto foreign = train("-o train.max_steps=1");
  EXPECT_EQ(foreign.status, 2);
  EXPECT_NE(foreign.err.find("other/kind12: training has no class 'kind12', did you mean 'kind1'?"),
            std::string::npos)
      << foreign.err;
  const auto few = train("-o train.max_steps=1 model.head.num_classes=3");
  EXPECT_EQ(few.status, 2);
  EXPECT_NE(few.err.find("the data have 10 classes, model.head.num_classes is 3"),
            std::string::npos)
      << few.err;
  const auto mixed = train("-o train.max_steps=1 eval.dataset.type=Cifar10Dataset");
  EXPECT_EQ(mixed.status, 2);
  EXPECT_NE(mixed.err.find("their classes have other numbers"), std::string::npos) << mixed.err;
  const auto checked = train(
      "--check -o eval.dataset=\"{type: Cifar10Dataset, data_dir: d, transform_pipeline: "
      "[{NormalizeImage: }]}\"");
  EXPECT_EQ(checked.status, 2);
  EXPECT_NE(checked.err.find("their classes have other numbers"), std::string::npos) << checked.err;
}

}  // namespace
}  // namespace lockstep
