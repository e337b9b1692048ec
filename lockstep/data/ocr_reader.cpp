#include "lockstep/data/ocr_reader.h"

namespace lockstep::inline internal {
namespace {

void collect_remarks(const ocr::Sample& sample, std::vector<std::string>& lines) {
  const auto& place = sample.label_source.empty() ? sample.source : sample.label_source;
  for (const auto& remark : sample.remarks) lines.push_back(place + ": " + remark);
}

}  // namespace

OcrReader::OcrReader(std::shared_ptr<const OcrSamples> samples, BadSample bad, uint64_t seed)
    : samples_(std::move(samples)), bad_(bad), seed_(seed) {}

OcrRows OcrReader::read(int64_t epoch, std::span<const int64_t> indices,
                        std::span<const int64_t> keys) const {
  auto usable = make_usable<ocr::Sample>(
      {indices, keys}, samples_->size(), bad_, seed_, epoch,
      [&](int64_t index, int64_t key) { return samples_->make(epoch, index, key); },
      [](const ocr::Sample& sample) { return sample.source; });
  OcrRows rows{std::move(usable.samples), std::move(usable.faults), {}};
  for (const auto& sample : rows.samples) collect_remarks(sample, rows.remarks);
  return rows;
}

}  // namespace lockstep::inline internal
