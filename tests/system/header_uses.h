#pragma once
// The names that uses in public headers take as given: what a program of a user has beside them.

#include <lockstep/lockstep.h>
#include <lockstep/train.h>
#include <torch/torch.h>

#include <cstddef>
#include <cstdio>

extern lockstep::World world;
extern lockstep::ProcessGroup group;
extern torch::nn::Sequential net;
extern lockstep::DistributedDataParallel<torch::nn::Sequential> model;
extern torch::optim::SGD optimizer;

extern at::Tensor images, labels;
at::Tensor images_of(int virtual_rank);
at::Tensor labels_of(int virtual_rank);
at::Tensor loss_of(const at::Tensor& outputs, const at::Tensor& targets);

extern uint64_t seed;
extern int64_t step, num_steps, epochs, batch_size;
double train_one_step();

/// A data set of libtorch, and the batches of it.
struct Pictures : torch::data::Dataset<Pictures> {
  torch::data::Example<> get(size_t index) override;
  torch::optional<size_t> size() const override;
};
extern torch::data::datasets::MapDataset<Pictures, torch::data::transforms::Stack<>> data_set;

/// A data set, networks and a loss for Lockstep's trainer.
struct Points final : lockstep::BatchMaker {
  explicit Points(const lockstep::DatasetUse& use);
  int64_t size() const override;
  lockstep::Batch make(const lockstep::BatchRows& rows) const override;
};
struct Net final : lockstep::Model {};
struct TwoConvs final : lockstep::Model {
  TwoConvs(int64_t width, int64_t classes);
};
at::Tensor my_loss(const lockstep::Tensors& outputs, const lockstep::Tensors& targets);
lockstep::NetworkMaker read_two_convs(lockstep::Section& settings);
extern lockstep::Section section;

/// A network with two optimizers.
struct Gan final : lockstep::Model {};
extern lockstep::Recipe recipe;
extern lockstep::OptimizerMaker make_adam;
extern at::Tensor loss_d, loss_g;
