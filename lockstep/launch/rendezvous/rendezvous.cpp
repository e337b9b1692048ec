#include "lockstep/launch/rendezvous/rendezvous.h"

#include <fmt/format.h>

#include <ctime>

#include "lockstep/base/auth.h"
#include "lockstep/launch/rendezvous/elastic_rendezvous.h"

namespace lockstep {

std::unique_ptr<Rendezvous> make_rendezvous(const RunOptions& options, const std::string& secret) {
  return options.num_nodes == 1 ? make_lone_rendezvous(options, secret)
                                : make_elastic_rendezvous(options, secret);
}

std::string make_run_id() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return fmt::format("{}-{}", text, make_job_secret().substr(0, 4));
}

}  // namespace lockstep
