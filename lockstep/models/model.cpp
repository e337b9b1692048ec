#include "lockstep/model.h"

#include "lockstep/error.h"

namespace lockstep {

at::Tensor Model::forward(at::Tensor) {
  throw Error(ErrorCode::kInvalidArgument, "the network overrides neither forward() nor compute()");
}

std::vector<at::Tensor> Model::compute(const std::vector<at::Tensor>& inputs) {
  if (inputs.size() == 1) return {forward(inputs.front())};
  throw Error(ErrorCode::kInvalidArgument,
              "a batch has " + std::to_string(inputs.size()) +
                  " inputs, and the network does not override compute()");
}

}  // namespace lockstep
