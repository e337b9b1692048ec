#include <fcntl.h>
#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/launch/exchange/exchange.h"
#include "lockstep/launch/exchange/pmi_wire.h"

namespace lockstep {
namespace {

constexpr const char* kPmiKey = "lockstep-meeting";

class PmiExchange final : public RankExchange {
 public:
  explicit PmiExchange(int fd) : wire_(fd) {}

  void publish(const std::string& line, Deadline deadline) override {
    wire_.init(deadline);
    wire_.put(kPmiKey, line, deadline);
    wire_.barrier(deadline);
    wire_.finish(deadline);
  }
  std::string receive(Deadline deadline) override {
    wire_.init(deadline);
    wire_.barrier(deadline);
    auto line = wire_.get(kPmiKey, deadline);
    wire_.finish(deadline);
    return line;
  }

 private:
  PmiWire wire_;
};

}  // namespace

std::shared_ptr<RankExchange> open_pmi_exchange(int fd) {
  if (::fcntl(fd, F_GETFD) < 0) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("PMI_FD={} is not open: what stands between mpiexec and this process "
                            "closed it",
                            fd));
  }
  return std::make_shared<PmiExchange>(fd);
}

}  // namespace lockstep
