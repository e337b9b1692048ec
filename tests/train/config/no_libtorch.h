#pragma once
// Stands in for the classes that registered parts make. Reading a configuration needs only their
// names, so the programs that test it link no libtorch.

namespace torch::optim {
class Optimizer {};
}  // namespace torch::optim

namespace lockstep {
class BatchMaker {};
class Metric {};
}  // namespace lockstep
