#include "lockstep/launch/secret.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"

namespace lockstep {

std::string read_secret_file(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("environment variable LOCKSTEP_SECRET_FILE: {} {}", path, why));
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode)) throw refuse("is not a file");
    if (status.st_uid != ::geteuid()) throw refuse("belongs to another user");
    if ((status.st_mode & 077) != 0)
      throw refuse(fmt::format("can be read by others (mode {:o}): chmod 600 it",
                               static_cast<unsigned>(status.st_mode & 07777)));
  }
  auto secret = read_file(path, 4096);
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.empty() || secret.find('\n') != std::string::npos)
    throw refuse("must hold one line, the secret");
  return secret;
}

std::string secret_of_environment() {
  if (auto given = env("LOCKSTEP_SECRET")) return *given;
  const auto path = env("LOCKSTEP_SECRET_FILE");
  return path ? read_secret_file(*path) : "";
}

std::string secret_source() {
  if (env("LOCKSTEP_SECRET")) return "the variable LOCKSTEP_SECRET";
  if (const auto path = env("LOCKSTEP_SECRET_FILE"))
    return fmt::format("the file {} (LOCKSTEP_SECRET_FILE)", *path);
  return "nowhere: neither LOCKSTEP_SECRET nor LOCKSTEP_SECRET_FILE is set";
}

}  // namespace lockstep
