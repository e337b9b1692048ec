#include "lockstep/observe/metrics.h"

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "lockstep/base/clock.h"
#include "lockstep/base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/read_metrics.h"
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
    EXPECT_EQ(std::bit_cast<uint64_t>(back), std::bit_cast<uint64_t>(value)) << value;
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

TEST(Metrics, RecordsSayWhenAndWhose) {
  const TempFolder dir;
  {
    MetricsWriter writer(dir / "m", 0, MetricsLabels{"night", "vm", 2});
    writer.write(train_record(1));
  }
  const auto record = read_metrics(dir / "m").at(0);
  EXPECT_EQ(record.text("run"), "night");
  EXPECT_EQ(record.text("host"), "vm");
  EXPECT_EQ(record.value("rank"), 2);
  EXPECT_EQ(record.values.front().first, "loss") << "labels do not come between";
  EXPECT_NEAR(*seconds_of(*record.text("time")), seconds_since_1970(), 30);
  const std::string line = read_file(dir / "m");
  EXPECT_EQ(encode_metrics(decode_metrics(line)) + "\n", line);
  EXPECT_NE(line.find(R"("rank":2})"), std::string::npos) << line;
}

TEST(Metrics, TimesAreIso8601InUtc) {
  const auto time =
      std::chrono::system_clock::from_time_t(1'795'442'706) + std::chrono::milliseconds(7);
  EXPECT_EQ(utc_time(time), "2026-11-23T14:05:06.007Z");
  EXPECT_NEAR(*seconds_of("2026-11-23T14:05:06.007Z"), 1'795'442'706.007, 1e-4);
  EXPECT_FALSE(seconds_of("yesterday"));
  EXPECT_FALSE(seconds_of("2026-11-23T14:05:06"));
}

TEST(Metrics, ResumingSaysWhatIsLost) {
  const TempFolder dir;
  std::string lines;
  for (int64_t step = 1; step <= 5; ++step) {
    auto record = train_record(step);
    record.texts = {{"time", "2026-11-23T14:05:0" + std::to_string(step) + ".500Z"}};
    lines += encode_metrics(record) + "\n";
  }
  write_file_atomically(dir / "m", lines);
  const MetricsWriter writer(dir / "m", 3);
  EXPECT_EQ(writer.lost().steps, 2);
  EXPECT_NEAR(writer.lost().seconds, 2, 1e-6);
  EXPECT_EQ(MetricsWriter(dir / "other", 3).lost().steps, 0);
  const MetricsWriter anew(dir / "m", 0);
  EXPECT_EQ(anew.lost().steps, 3);
  EXPECT_NEAR(anew.lost().seconds, 2, 1e-6);
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
    const Error error = error_of([&] { read_metrics(dir / "m"); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_TRUE(std::string(error.what()).starts_with((dir / "m").string() + ":2: "));
    return std::string(error.what());
  };
  EXPECT_NE(error_for("hello").find("not a JSON object"), std::string::npos);
  EXPECT_NE(error_for("[1]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(error_for(R"({"kind":"t","epoch":1})").find("'step'"), std::string::npos);
  EXPECT_NE(error_for(R"({"epoch":1,"step":1})").find("'kind'"), std::string::npos);
  EXPECT_NE(error_for(R"({"kind":"t","epoch":1,"step":1,"x":[2]})").find("'x'"), std::string::npos);
}

TEST(Metrics, ADamagedFileIsSetAsideAndItsRecordsGoOn) {
  const TempFolder dir;
  const std::string damaged = encode_metrics(train_record(1)) + "\n" + std::string(20, '\0') +
                              "\n" + encode_metrics(train_record(2)) + "\n";
  write_file_atomically(dir / "m", damaged);
  MetricsWriter(dir / "m", 2).write(train_record(3));
  EXPECT_EQ(steps_in(dir / "m"), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(read_file(dir / "m.1"), damaged);
  std::filesystem::remove(dir / "m");
  std::filesystem::create_directory(dir / "m");  // not even a file
  MetricsWriter(dir / "m", 2).write(train_record(3));
  EXPECT_EQ(steps_in(dir / "m"), std::vector<int64_t>{3});
  EXPECT_TRUE(std::filesystem::is_directory(dir / "m.2"));
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
