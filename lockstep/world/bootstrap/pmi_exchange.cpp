#include <fcntl.h>
#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/world/bootstrap/exchange.h"
#include "lockstep/world/bootstrap/pmi_wire.h"

namespace lockstep {
namespace {

constexpr const char* kPmiKey = "lockstep-meeting";

void publish_by(PmiWire& wire, const std::string& line, Deadline deadline) {
  wire.init(deadline);
  wire.put(kPmiKey, line, deadline);
  wire.barrier(deadline);
  wire.finish(deadline);
}

std::string receive_by(PmiWire& wire, Deadline deadline) {
  wire.init(deadline);
  wire.barrier(deadline);
  auto line = wire.get(kPmiKey, deadline);
  wire.finish(deadline);
  return line;
}

class PmiExchange final : public RankExchange {
 public:
  explicit PmiExchange(int fd) : wire_(fd) {}

  void publish(const std::string& line, Deadline deadline) override {
    publish_by(wire_, line, deadline);
  }
  std::string receive(Deadline deadline) override { return receive_by(wire_, deadline); }

 private:
  PmiWire wire_;
};

class PmiPortExchange final : public RankExchange {
 public:
  explicit PmiPortExchange(const Environment& environment) : environment_(environment) {}

  void publish(const std::string& line, Deadline deadline) override {
    PmiPort port(environment_, deadline);
    publish_by(port.wire(), line, deadline);
  }
  std::string receive(Deadline deadline) override {
    PmiPort port(environment_, deadline);
    return receive_by(port.wire(), deadline);
  }

 private:
  const Environment environment_;
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

std::shared_ptr<RankExchange> open_pmi_port_exchange(const Environment& environment) {
  return std::make_shared<PmiPortExchange>(environment);
}

}  // namespace lockstep
