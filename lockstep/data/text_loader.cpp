#include "lockstep/data/text_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <opencv2/core.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/heap.h"
#include "lockstep/data/philox.h"

namespace lockstep {
namespace {

std::vector<std::string> remarks_of(const std::vector<ocr::Sample>& samples) {
  std::vector<std::string> lines;
  for (const auto& sample : samples) {
    const auto& place = sample.label_source.empty() ? sample.source : sample.label_source;
    for (const auto& remark : sample.remarks) lines.push_back(place + ": " + remark);
  }
  return lines;
}

}  // namespace

TextLoader::TextLoader(std::shared_ptr<const TextSamples> samples, TextColumns columns,
                       const LoaderOptions& options, uint64_t seed)
    : samples_(std::move(samples)),
      columns_(columns),
      options_(options),
      seed_(seed),
      batches_(options.threads, options.prefetch) {
  check_loader_options(options);
  cv::setNumThreads(1);
  keep_freed_memory();
}

int64_t TextLoader::num_batches(int64_t num_samples) const {
  return lockstep::num_batches(options_, num_samples);
}

void TextLoader::start(int64_t epoch, std::vector<int64_t> order,
                       std::optional<int64_t> num_counted) {
  check_order(order, samples_->size());
  const auto size = static_cast<int64_t>(order.size());
  auto plan =
      std::make_shared<const Epoch>(Epoch{epoch, std::move(order), num_counted.value_or(size)});
  batches_.start(num_batches(size),
                 [this, plan](int64_t batch) { return make_batch(*plan, batch); });
}

std::optional<Batch> TextLoader::next() {
  return batches_.next(Deadline::after(options_.timeout));
}

ocr::Sample TextLoader::replacement(int64_t epoch, int64_t index, std::string& line) const {
  constexpr int kTries = 10;
  // The stream of a word that no transform draws from: the epoch with its highest bit set.
  Philox random(seed_, static_cast<uint32_t>(epoch) | 0x80000000, static_cast<uint64_t>(index));
  for (int i = 0; i < kTries; ++i) {
    const auto other = random.below(static_cast<uint32_t>(samples_->size()));
    try {
      auto sample = samples_->make(epoch, other);
      line += fmt::format("; sample {} ({}) stands in its place", other, sample.source);
      return sample;
    } catch (const Error&) {
      continue;  // it has its own warning in its own turn
    }
  }
  throw Error(ErrorCode::kCorrupt,
              fmt::format("{}; nor could {} others, drawn in its place", line, kTries));
}

Batch TextLoader::make_batch(const Epoch& epoch, int64_t batch) const {
  const bool judges = columns_ == TextColumns::kTruths;
  const int64_t begin = batch * options_.batch_size;
  const auto size = static_cast<int64_t>(epoch.order.size());
  const int64_t end =
      std::min(begin + options_.batch_size, judges ? std::min(size, epoch.num_counted) : size);
  std::vector<ocr::Sample> samples;
  std::vector<std::string> faults;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t index = epoch.order[static_cast<size_t>(i)];
    try {
      samples.push_back(samples_->make(epoch.number, index));
    } catch (const Error& error) {
      std::string line = fmt::format("sample {} cannot be used: {}", index, error.what());
      if (!judges) samples.push_back(replacement(epoch.number, index, line));
      faults.push_back(std::move(line));
    }
  }
  auto remarks = remarks_of(samples);
  Batch made = make_text_batch(std::move(samples), columns_);
  if (!judges) made.valid = std::clamp<int64_t>(epoch.num_counted - begin, 0, made.valid);
  made.faults = std::move(faults);
  made.remarks = std::move(remarks);
  return made;
}

}  // namespace lockstep
