#include "lockstep/store/url/open_store.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/store/etcd/etcd_store.h"
#include "lockstep/store/file/file_store.h"
#include "lockstep/store/memory/memory_store.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep::inline internal {
namespace {

constexpr int kEtcdPort = 2379;

/// A URL split into its parts; each opener refuses the parts it does not use.
struct StoreUrl {
  std::string text;
  std::string hosts;
  std::string path;     ///< With its '/', or empty.
  std::string options;  ///< Without the '?'.

  Error wrong(const std::string& why) const {
    return {ErrorCode::kInvalidArgument, fmt::format("store '{}': {}", text, why)};
  }
};

StoreUrl cut(const std::string& text, std::string_view rest) {
  StoreUrl url{text, {}, {}, {}};
  if (const size_t question = rest.find('?'); question != std::string_view::npos) {
    url.options = rest.substr(question + 1);
    rest = rest.substr(0, question);
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  url.hosts = rest.substr(0, slash);
  url.path = rest.substr(slash);
  return url;
}

void take_option(const StoreUrl& url, EtcdOptions& options, const std::string& option) {
  const size_t equals = std::min(option.find('='), option.size());
  const std::string name = option.substr(0, equals);
  const std::string value = option.substr(std::min(option.size(), equals + 1));
  if (name == "protocol") {
    if (value != "http" && value != "https")
      throw url.wrong(fmt::format("protocol '{}', http and https are known", value));
    options.use_tls = options.use_tls || value == "https";
    return;
  }
  const std::vector<std::string> names = {"protocol", "ca_cert", "ssl_cert", "ssl_cert_key"};
  const std::array<std::string*, 3> files = {&options.tls.ca, &options.tls.certificate,
                                             &options.tls.key};
  for (size_t i = 0; i < files.size(); ++i) {
    if (name != names[i + 1]) continue;
    if (value.empty()) throw url.wrong(fmt::format("{} wants a file", name));
    *files.at(i) = value;
    options.use_tls = true;
    return;
  }
  throw url.wrong(fmt::format("no option '{}'{}", name, did_you_mean(name, names)));
}

std::shared_ptr<Store> open_etcd(const StoreUrl& url, Deadline deadline) {
  EtcdOptions options;
  for (const auto& member : split(url.hosts, ','))
    options.members.push_back(parse_endpoint(member, kEtcdPort));
  std::string root = url.path.substr(std::min(url.path.size(), url.path.find_first_not_of('/')));
  if (!root.empty()) options.root = root.ends_with('/') ? root : root + '/';
  if (!url.options.empty()) {
    for (const auto& option : split(url.options, '&')) take_option(url, options, option);
  }
  return connect_etcd_store(options, deadline);
}

std::shared_ptr<Store> open_tcp(const StoreUrl& url, const std::string& secret, Deadline deadline) {
  const Endpoint server = parse_endpoint(url.hosts, 0);
  if (server.port == 0) throw url.wrong("no port; write tcp://HOST:PORT");
  if (url.path.size() > 1 || !url.options.empty())
    throw url.wrong("nothing may follow the port; write tcp://HOST:PORT");
  return connect_tcp_store(server, secret, deadline);
}

std::shared_ptr<Store> open_file(const StoreUrl& url, const std::string& secret,
                                 Deadline deadline) {
  if (!url.hosts.empty() || url.path.size() < 2 || !url.options.empty())
    throw url.wrong("not the absolute path of a folder; write file:///PATH");
  return join_file_store(url.path, secret, deadline);
}

}  // namespace

std::shared_ptr<Store> open_store(const std::string& url, const std::string& secret,
                                  Deadline deadline) {
  const size_t colon = url.find("://");
  const std::string scheme = url.substr(0, std::min(colon, url.size()));
  const StoreUrl parts =
      cut(url, colon == std::string::npos ? "" : std::string_view(url).substr(colon + 3));
  if (colon == std::string::npos)
    throw parts.wrong("not a URL; write tcp://HOST:PORT, etcd://HOST:2379 or file:///FOLDER");
  if (scheme == "tcp") return open_tcp(parts, secret, deadline);
  if (scheme == "etcd") return open_etcd(parts, deadline);
  if (scheme == "file") return open_file(parts, secret, deadline);
  if (scheme == "memory") return make_memory_store();
  const std::vector<std::string> schemes = {"tcp", "etcd", "file", "memory"};
  throw parts.wrong(fmt::format("no kind '{}'{}; there are tcp, etcd, file and memory", scheme,
                                did_you_mean(scheme, schemes)));
}

}  // namespace lockstep::inline internal
