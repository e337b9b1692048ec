#include "lockstep/world/bootstrap/exchange.h"
#include "lockstep/world/bootstrap/pmix_library.h"

namespace lockstep {
namespace {

constexpr const char* kPmixKey = "lockstep.meeting";

class PmixExchange final : public RankExchange {
 public:
  void publish(const std::string& line, Deadline deadline) override {
    client_.put(kPmixKey, line);
    client_.fence(deadline);
  }
  std::string receive(Deadline deadline) override {
    client_.fence(deadline);
    return client_.get_text(0, kPmixKey, deadline);
  }

 private:
  PmixClient& client_ = PmixClient::get();
};

}  // namespace

std::shared_ptr<RankExchange> open_pmix_exchange() {
  return std::make_shared<PmixExchange>();
}

}  // namespace lockstep
