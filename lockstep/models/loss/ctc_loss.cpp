#include "lockstep/models/loss/ctc_loss.h"

#include <ATen/ops/ctc_loss.h>
#include <ATen/ops/log_softmax.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "lockstep/error.h"
#include "lockstep/models/layers.h"

namespace lockstep::inline internal {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, "CTCLoss: " + why);
}

/// Number of classes in the row before its padding.
int64_t label_length(const int64_t* row, int64_t size, int64_t blank, int64_t image) {
  int64_t length = 0;
  while (length < size && row[length] < blank) ++length;
  for (int64_t i = 0; i < size; ++i) {
    if (row[i] >= 0 && (i < length || row[i] >= blank)) continue;
    refuse(
        fmt::format("text_seq of image {} has {} at place {}; it is classes 0 to {}, then only "
                    "padding ({} or more)",
                    image, row[i], i, blank - 1, blank));
  }
  return length;
}

std::vector<int64_t> label_lengths(const at::Tensor& labels, int64_t blank) {
  const at::Tensor on_host = labels.to(at::kCPU).contiguous();
  std::vector<int64_t> lengths;
  for (int64_t image = 0; image < on_host.size(0); ++image) {
    const auto* row = on_host.data_ptr<int64_t>() + image * on_host.size(1);
    lengths.push_back(label_length(row, on_host.size(1), blank, image));
  }
  return lengths;
}

class CtcLoss final : public Loss {
 public:
  explicit CtcLoss(const CtcLossConfig& options) : options_(options) {
    if (options.max_label_len < options.pred_seq_len) return;
    refuse(
        fmt::format("pred_seq_len is {}, max_label_len {}: a label needs more frames than it has"
                    " characters; lower max_text_len or use a wider input",
                    options.pred_seq_len, options.max_label_len));
  }

  at::Tensor operator()(const at::Tensor& output, std::span<const at::Tensor> targets) override {
    check(output, targets);
    const int64_t images = output.size(1), blank = output.size(2) - 1;
    const at::Tensor labels = targets[0].to(at::kLong);
    const auto lengths = label_lengths(labels, blank);
    const std::vector<int64_t> frames(static_cast<size_t>(images), options_.pred_seq_len);
    const auto log_p = at::log_softmax(as_full_precision(output), 2);
    return at::ctc_loss(log_p, labels, frames, lengths, blank, at::Reduction::None,
                        /*zero_infinity=*/true)
        .mean();
  }

 private:
  void check(const at::Tensor& output, std::span<const at::Tensor> targets) const {
    if (output.dim() != 3 || targets.empty() || targets[0].dim() != 2 ||
        targets[0].size(0) != output.size(1)) {
      refuse(fmt::format(
          "output ({}) with text_seq ({}); they are (W, N, K) and (N, L)",
          fmt::join(output.sizes(), ", "),
          targets.empty() ? "none" : fmt::format("{}", fmt::join(targets[0].sizes(), ", "))));
    }
    if (output.size(0) >= options_.pred_seq_len) return;
    refuse(
        fmt::format("the network gives {} frames, loss.pred_seq_len is {}: lower it, or use a wider"
                    " input",
                    output.size(0), options_.pred_seq_len));
  }

  CtcLossConfig options_;
};

}  // namespace

std::unique_ptr<Loss> make_ctc_loss(const CtcLossConfig& options) {
  return std::make_unique<CtcLoss>(options);
}

}  // namespace lockstep::inline internal
