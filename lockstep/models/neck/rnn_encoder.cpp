#include "lockstep/models/neck/rnn_encoder.h"

#include <fmt/format.h>
#include <torch/nn/modules/rnn.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

class RnnEncoder final : public Neck {
 public:
  RnnEncoder(int64_t in_channels, int64_t hidden_size)
      : channels_(2 * hidden_size),
        lstm_(register_module("seq_encoder",
                              torch::nn::LSTM(torch::nn::LSTMOptions(in_channels, hidden_size)
                                                  .num_layers(2)
                                                  .bidirectional(true)))) {}

  at::Tensor forward(std::vector<at::Tensor> features) override {
    const at::Tensor& map = features.back();
    if (map.size(2) != 1) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("RNNEncoder takes feature maps one row high, not {}: images for this "
                              "backbone are 32 rows high",
                              map.size(2)));
    }
    const at::Tensor columns = map.squeeze(2).permute({2, 0, 1}).contiguous();
    return std::get<0>(lstm_->forward(columns));
  }

  int64_t out_channels() const override { return channels_; }

 private:
  int64_t channels_;
  torch::nn::LSTM lstm_;
};

}  // namespace

std::shared_ptr<Neck> make_rnn_encoder(int64_t in_channels, int64_t hidden_size) {
  if (hidden_size < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("model.neck.hidden_size is {}; at least 1", hidden_size));
  }
  return std::make_shared<RnnEncoder>(in_channels, hidden_size);
}

}  // namespace lockstep
