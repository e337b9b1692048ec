#include "tests/store/etcd/etcd_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <vector>

#include "lockstep/base/socket.h"
#include "lockstep/store/etcd/http.h"
#include "tests/store/helpers.h"

namespace lockstep::testing {

EtcdServer::EtcdServer(Wire wire) : wire_(wire) {
  start();
  connect_etcd_store(new_root(), soon());
}

void EtcdServer::start() {
  const std::string url = (wire_ == Wire::kTls ? "https://" : "http://") + to_string(endpoint());
  // Values of any size that a store allows; the data need not survive this machine.
  std::vector<std::string> arguments = {"etcd",
                                        "--data-dir=" + (data_ / "data").string(),
                                        "--unsafe-no-fsync",
                                        "--max-request-bytes=40000000",
                                        "--log-level=error",
                                        "--logger=zap",
                                        "--listen-client-urls=" + url,
                                        "--advertise-client-urls=" + url,
                                        "--listen-peer-urls=http://127.0.0.1:0"};
  if (wire_ == Wire::kTls) arguments.emplace_back("--auto-tls");
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string log = (data_ / "log").string();
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(fd, STDOUT_FILENO);
  ::dup2(fd, STDERR_FILENO);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

void EtcdServer::kill() {
  end_by(SIGKILL);
}

void EtcdServer::end() {
  end_by(SIGTERM);
}

void EtcdServer::end_by(int signal) {
  if (pid_ <= 0) return;
  ::kill(pid_, signal);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void EtcdServer::forget() const {
  std::filesystem::remove_all(data_ / "data");
}

void EtcdServer::stop() const {
  ::kill(pid_, SIGSTOP);
  ::waitpid(pid_, nullptr, WUNTRACED);
}

void EtcdServer::go_on() const {
  ::kill(pid_, SIGCONT);
}

EtcdOptions EtcdServer::new_root() {
  EtcdOptions options;
  options.members = {endpoint()};
  options.root = fmt::format("test {}/", ++num_roots_);
  if (wire_ == Wire::kTls) {
    options.use_tls = true;
    options.tls.ca = certificate();
  }
  return options;
}

void EtcdServer::compact(uint64_t revision) const {
  HttpClient http({});
  const auto result = http.post(fmt::format("http://{}/v3/kv/compaction", to_string(endpoint())),
                                fmt::format(R"({{"revision":"{}"}})", revision), soon());
  EXPECT_EQ(result.status, 200) << result.body << result.why;
}

double EtcdServer::counter(const std::string& name) const {
  const UniqueFd fd = tcp_connect(endpoint(), soon());
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  send_all(fd.get(), request.data(), request.size(), soon(), "etcd");
  std::string page;
  char buffer[1 << 16];
  for (ssize_t got = 0; (got = ::read(fd.get(), buffer, sizeof buffer)) > 0;)
    page.append(buffer, static_cast<size_t>(got));
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return std::stod(line.substr(line.rfind(' ')));
  }
  ADD_FAILURE() << "etcd counts no " << name;
  return 0;
}

EtcdServer& shared_etcd() {
  static EtcdServer server;
  return server;
}

}  // namespace lockstep::testing
