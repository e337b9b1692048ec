#pragma once

#include <string>
#include <utility>

#include "lockstep/store/request_store.h"
#include "lockstep/store/store_state.h"

namespace lockstep::testing {

/// A store for one thread, in which a wait that would take time times out at once. It counts its
/// requests.
class TimelessStore final : public RequestStore {
 public:
  int questions = 0;
  int watched = 0;

 private:
  StoreReply call(StoreRequest request, Deadline /*deadline*/) override {
    ++questions;
    if (request.op == StoreOp::kWatch) ++watched;
    auto answers = state_.submit({}, std::move(request));
    return answers.empty() ? state_.cancel({}).value() : std::move(answers.front().reply);
  }
  std::string name() const override { return "store without time"; }

  StoreState state_;
};

}  // namespace lockstep::testing
