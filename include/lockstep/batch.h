#pragma once
// A Batch brings samples to a network, and a BatchMaker makes the batches of a data set.
//
// Use:
//   class Points final : public lockstep::BatchMaker {
//     int64_t size() const override { return 1000; }
//     lockstep::Batch make(const lockstep::BatchRows& rows) const override {
//       const auto numbers = lockstep::indices_of(rows);
//       return {xs_.index_select(0, numbers), {ys_.index_select(0, numbers)}, rows.num_counted};
//     }
//     at::Tensor xs_ = torch::linspace(0, 1, 2000).view({1000, 2}), ys_ = xs_.sum(1);
//   };
//
// Threads: several threads call make() of one BatchMaker at the same time. A Batch is for one
// thread at a time; its copies share the tensors.
// Cost: inputs_on() and move_to() copy what is not on the device, and make floats of bytes. pin()
// copies once more, within the host.
// Errors: kInvalidArgument of text_pictures(); c10::Error of libtorch where a copy fails.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/named_tensors.h"

namespace lockstep::inline internal {
struct OcrGroundTruth;  // See text_pictures().
}

namespace lockstep {

struct Batch {
  /// The network's first input: N rows, contiguous, on the CPU. Images are float32, or bytes: see
  /// byte_values.
  at::Tensor images{};
  Tensors targets{};  ///< Targets of the loss: columns of N rows each.
  /// Leading rows that count; the others are padding, so that all ranks have equally many batches.
  int64_t valid = 0;
  std::shared_ptr<const OcrGroundTruth> ground_truth{};  ///< For text, in evaluation: N samples.
  /// A line for each unusable sample: in training another one replaces it, in evaluation it is left
  /// out.
  std::vector<std::string> faults{};
  /// A line for each part that was left out of a used sample.
  std::vector<std::string> remarks{};
  Tensors more_inputs{};  ///< Of the network, after `images`: N rows each. See Model::compute().
  /// The number that each byte of a channel stands for: (C, 256) float32. If it is defined, images
  /// are (N, H, W, C) uint8, and inputs_on() makes floats of them. A quarter of the bytes travels
  /// to a device. The trainer asks for it to train; networks, losses and metrics get floats.
  at::Tensor byte_values{};
  /// Of `images`, for a network that takes its inputs by name. A data set gives the same names, of
  /// inputs and targets, in every batch.
  std::string images_name{};

  /// images, then more_inputs, with their names.
  Tensors inputs() const;
  /// Replaces images and more_inputs: `set_inputs({{"left", left}, {"right", right}})`.
  void set_inputs(const Tensors& inputs);
  /// As inputs(), on `device`; tensors already there stay. From page-locked memory the copy goes on
  /// beside the caller, in the device's current stream.
  Tensors inputs_on(at::Device device) const;
  /// Moves inputs and targets to `device`, likewise.
  void move_to(at::Device device);
  /// Moves the CPU's inputs and targets to page-locked memory, from which CUDA copies without a
  /// halt. Sparse tensors stay.
  void pin();
};

/// Corners in pixels, in order: x right, y down.
struct TextPoint {
  float x = 0;
  float y = 0;
};

/// A piece of text in a picture.
struct TextPolygon {
  std::vector<TextPoint> corners;  ///< At least 3.
  std::string text{};              ///< Of the truth, UTF-8.
  bool ignored = false;            ///< Of the truth: illegible, neither found nor missed.
  double score = 1;                ///< Of what was found, 0 to 1.
};

/// A picture of an evaluation of text: the truth, and beside it what the network made of it by
/// the section `postprocess`.
struct TextPicture {
  std::string source{};  ///< For messages, such as "images/1.jpg".
  // Detection. Pixels are those of the picture as it was read.
  std::vector<TextPolygon> truth{};
  std::vector<TextPolygon> found{};
  // Recognition, UTF-8.
  std::string label{};    ///< The truth.
  std::string read{};     ///< The network's text.
  double confidence = 0;  ///< Of that text, 0 to 1.
};

/// What metrics of text compare: a picture for each of a batch's first `valid` rows.
/// Errors: kInvalidArgument for a batch without.
const std::vector<TextPicture>& text_pictures(const Batch& batch);
/// Replaces them.
void set_text_pictures(Batch& batch, std::vector<TextPicture> pictures);

/// The samples of a batch: in training, those of one virtual rank in one micro-step.
struct BatchRows {
  int64_t epoch = 0;
  std::span<const int64_t> samples;
  int64_t num_counted = 0;  ///< Leading ones that count; the others are padding.
  /// Of samples that are drawn with replacement: the place of each draw in the epoch's list.
  /// Without weights() there are none.
  std::span<const int64_t> keys{};

  /// For each sample, the number by which its random values are drawn, with the run's seed and the
  /// epoch. It differs between two draws of one sample in one epoch, so each has random values of
  /// its own. Only padding repeats the first draws with their keys. It is the same on any number of
  /// ranks, and after a restart. Without weights() it is the sample itself.
  std::span<const int64_t> random_keys() const { return keys.empty() ? samples : keys; }
};

/// Makes the batches of one data set. Read-only after construction: any number of threads may use
/// it.
class BatchMaker {
 public:
  virtual ~BatchMaker() = default;
  /// Samples are numbered 0 .. size()-1.
  virtual int64_t size() const = 0;
  /// Batch of as many rows as `rows.samples`, with valid == rows.num_counted. In evaluation
  /// unusable samples may be left out, each with a line in Batch::faults, and so is padding then:
  /// every row is valid. The batch depends on `rows` alone, so that it is the same on any rank,
  /// after any restart. A sample may depend on the other ones of its batch, as where all are padded
  /// to the longest: batches may differ in their shapes.
  ///
  /// Called once for each batch that the network gets: that of loader.batch_size samples, or the
  /// rest, of one virtual rank. So training and evaluation have the same bits on any number of
  /// ranks with the same parallel.virtual_ranks. Without it each rank is one virtual rank. Then
  /// figures of an evaluation depend on the number of ranks, too, if padding changes a network's
  /// outputs. Errors: those of reading the samples; they end the run.
  virtual Batch make(const BatchRows& rows) const = 0;
  /// In training, how often each of the size() samples is drawn, in proportion: 1.0 / (samples of
  /// its class) for classes that are drawn alike. An epoch then has size() draws with replacement,
  /// which are those of weighted_order() (distributed_sampler.h). None: it has each sample once. A
  /// maker that draws random values should do so by BatchRows::random_keys(). Called once, before
  /// the first epoch. The same on every rank, else the run ends there. Errors: those of
  /// weighted_order().
  virtual std::vector<double> weights() const { return {}; }
};

/// The numbers of the samples as a tensor, for index_select(): (N) int64.
at::Tensor indices_of(const BatchRows& rows);

}  // namespace lockstep
