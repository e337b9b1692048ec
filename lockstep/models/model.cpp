#include "lockstep/model.h"

#include "lockstep/error.h"

namespace lockstep {

at::Tensor Model::forward(at::Tensor) {
  throw Error(ErrorCode::kInvalidArgument, "the network overrides neither forward() nor compute()");
}

Tensors Model::compute(const Tensors& inputs) {
  if (inputs.size() == 1) return {forward(inputs.front())};
  throw Error(ErrorCode::kInvalidArgument,
              "a batch has " + std::to_string(inputs.size()) +
                  " inputs, and the network does not override compute()");
}

}  // namespace lockstep
