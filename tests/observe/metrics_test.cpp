#include "lockstep/observe/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "lockstep/base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

MetricsRecord train_record(int64_t step) {
  return {"train", 1, step, {{"loss", 2.5}, {"lr", 0.1}}};
}

std::vector<int64_t> steps_in(const std::filesystem::path& path) {
  std::vector<int64_t> steps;
  for (const MetricsRecord& record : read_metrics(path)) steps.push_back(record.step);
  return steps;
}

TEST(Metrics, OneObjectInOrder) {
  EXPECT_EQ(encode_metrics(train_record(20)),
            R"({"kind":"train","epoch":1,"step":20,"loss":2.5,"lr":0.1})");
}

TEST(Metrics, DoublesRoundTrip) {
  MetricsRecord record{"eval", 3, 9, {}};
  for (const double value : {1.0 / 3, 1e300, 5e-324, -0.0, 0.1, 3.0, 1e22}) {
    record.values = {{"x", value}};
    const double back = *decode_metrics(encode_metrics(record)).value("x");
    EXPECT_EQ(std::memcmp(&back, &value, sizeof value), 0) << value;
  }
}

TEST(Metrics, NoNumberIsNull) {
  const MetricsRecord record{"train", 1, 1, {{"loss", std::nan("")}, {"x", INFINITY}}};
  EXPECT_EQ(encode_metrics(record), R"({"kind":"train","epoch":1,"step":1,"loss":null,"x":null})");
  EXPECT_TRUE(std::isnan(*decode_metrics(encode_metrics(record)).value("loss")));
  EXPECT_FALSE(record.value("lr"));
}

TEST(Metrics, WritesLinesAndStartsAnew) {
  const TempFolder dir;
  {
    MetricsWriter writer(dir / "metrics.jsonl", 0);
    writer.write(train_record(1));
    EXPECT_EQ(read_metrics(dir / "metrics.jsonl").size(), 1u) << "at once, not at the end";
    writer.write(train_record(2));
  }
  EXPECT_EQ(steps_in(dir / "metrics.jsonl"), (std::vector<int64_t>{1, 2}));
  { MetricsWriter writer(dir / "metrics.jsonl", 0); }
  EXPECT_TRUE(steps_in(dir / "metrics.jsonl").empty());
}

TEST(Metrics, ResumingDropsWhatCameAfter) {
  const TempFolder dir;
  {
    MetricsWriter writer(dir / "metrics.jsonl", 5);  // nothing to resume: no file
    for (int64_t step = 1; step <= 15; ++step) writer.write(train_record(step));
  }
  {
    MetricsWriter writer(dir / "metrics.jsonl", 10);
    writer.write(train_record(11));
  }
  EXPECT_EQ(steps_in(dir / "metrics.jsonl"),
            (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(Metrics, ALineCutOffByAKillIsLeftOut) {
  const TempFolder dir;
  write_file_atomically(dir / "m", encode_metrics(train_record(1)) + "\n{\"kind\":\"tr");
  EXPECT_EQ(steps_in(dir / "m"), std::vector<int64_t>{1});
  { MetricsWriter writer(dir / "m", 1); }
  EXPECT_EQ(read_file(dir / "m"), encode_metrics(train_record(1)) + "\n");
}

TEST(Metrics, NamesFileAndLineOfDamage) {
  const TempFolder dir;
  const auto error_for = [&](const std::string& line) {
    write_file_atomically(dir / "m", encode_metrics(train_record(1)) + "\n" + line + "\n");
    const Error error = error_of([&] { MetricsWriter(dir / "m", 1); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_TRUE(std::string(error.what()).starts_with((dir / "m").string() + ":2: "));
    return std::string(error.what());
  };
  EXPECT_NE(error_for("hello").find("not a JSON object"), std::string::npos);
  EXPECT_NE(error_for("[1]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(error_for(R"({"kind":"t","epoch":1})").find("'step'"), std::string::npos);
  EXPECT_NE(error_for(R"({"epoch":1,"step":1})").find("'kind'"), std::string::npos);
  EXPECT_NE(error_for(R"({"kind":"t","epoch":1,"step":1,"x":"y"})").find("'x'"), std::string::npos);
}

TEST(Metrics, AFullDiskLeavesWholeLines) {
  const TempFolder dir;
  MetricsWriter writer(dir / "m", 0);
  writer.write(train_record(1));
  const std::string before = read_file(dir / "m");
  {
    const FileSizeLimit limit(before.size() + 10);
    EXPECT_EQ(error_of([&] { writer.write(train_record(2)); }).code(), ErrorCode::kIo);
  }
  EXPECT_EQ(read_file(dir / "m"), before);
}

}  // namespace
}  // namespace lockstep
