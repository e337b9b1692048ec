#include "lockstep/base/reserved_port.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "lockstep/base/holder.h"
#include "lockstep/base/port_range.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep {

ReservedPort::ReservedPort(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (!fd_) throw io_error("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (!bind_port(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address)) {
    if (port == 0 && errno == EADDRINUSE)
      throw Error(ErrorCode::kUnavailable, port_taken_text(port));
    if (errno != EADDRINUSE && errno != EACCES) throw io_error(fmt::format("bind port {}", port));
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--master_port: port {} is {}; choose another, or none for a free one",
                            port, errno == EACCES ? "for root only" : taken_by_text(port)));
  }
  port_ = local_port(fd_.get());
}

}  // namespace lockstep
