#include "lockstep/data/ocr_reader.h"

#include <fmt/format.h>

#include "lockstep/base/philox.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

void collect_remarks(const ocr::Sample& sample, std::vector<std::string>& lines) {
  const auto& place = sample.label_source.empty() ? sample.source : sample.label_source;
  for (const auto& remark : sample.remarks) lines.push_back(place + ": " + remark);
}

}  // namespace

OcrReader::OcrReader(std::shared_ptr<const TextSamples> samples, BadSample bad, uint64_t seed)
    : samples_(std::move(samples)), bad_(bad), seed_(seed) {}

ocr::Sample OcrReader::replacement(int64_t epoch, int64_t index, std::string& line) const {
  constexpr int kTries = 10;
  // A stream that no transform draws from: the word of the epoch has its highest bit set.
  Philox random(seed_, static_cast<uint32_t>(epoch) | 0x80000000, static_cast<uint64_t>(index));
  for (int i = 0; i < kTries; ++i) {
    const auto other = random.below(static_cast<uint32_t>(samples_->size()));
    try {
      auto sample = samples_->make(epoch, other);
      line += fmt::format("; sample {} ({}) stands in its place", other, sample.source);
      return sample;
    } catch (const Error&) {
      continue;  // it has its own warning when its turn comes
    }
  }
  throw Error(ErrorCode::kCorrupt,
              fmt::format("{}; nor could {} others, drawn in its place", line, kTries));
}

TextRows OcrReader::read(int64_t epoch, std::span<const int64_t> indices) const {
  TextRows rows;
  for (const int64_t index : indices) {
    try {
      rows.samples.push_back(samples_->make(epoch, index));
    } catch (const Error& error) {
      std::string line = fmt::format("sample {} cannot be used: {}", index, error.what());
      if (bad_ == BadSample::kReplaced) {
        rows.samples.push_back(replacement(epoch, index, line));
      }
      rows.faults.push_back(std::move(line));
    }
  }
  for (const auto& sample : rows.samples) collect_remarks(sample, rows.remarks);
  return rows;
}

}  // namespace lockstep
