#include "lockstep/launch/job/rendezvous_conf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/store.h"

namespace lockstep::inline internal {
namespace {

[[noreturn]] void refuse_conf(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, text);
}

struct ConfKey {
  using Apply = void (*)(RendezvousConf& conf, const std::string& value, const std::string& what);
  std::string_view name;
  Apply apply;
  std::string_view same_as = "";  ///< Another name of this key.
};

template <std::chrono::milliseconds RendezvousConf::*kTime>
void set_time(RendezvousConf& conf, const std::string& value, const std::string& what) {
  conf.*kTime = parse_seconds(value, what);
}

template <std::string RendezvousConf::*kText>
void set_conf_text(RendezvousConf& conf, const std::string& value, const std::string&) {
  conf.*kText = value;
}

void check_time(RendezvousConf&, const std::string& value, const std::string& what) {
  parse_seconds(value, what);
}

void set_attempts(RendezvousConf& conf, const std::string& value, const std::string& what) {
  conf.heartbeat_attempts = static_cast<int>(parse_int(value, 1, 1 << 20, what));
}

void set_conf_rank(RendezvousConf& conf, const std::string& value, const std::string& what) {
  conf.conf_rank = static_cast<int>(parse_int(value, 0, 1 << 20, what));
}

void set_is_host(RendezvousConf& conf, const std::string& value, const std::string& what) {
  static const std::set<std::string> kYes = {"1", "true", "True", "t", "yes", "y"};
  static const std::set<std::string> kNo = {"0", "false", "False", "f", "no", "n"};
  if (kYes.count(value) + kNo.count(value) == 0) {
    refuse_conf(fmt::format("{}: '{}' is neither true nor false", what, value));
  }
  conf.is_host = kYes.count(value) > 0;
}

void set_store_type(RendezvousConf& conf, const std::string& value, const std::string& what) {
  if (value != "tcp" && value != "file") {
    refuse_conf(fmt::format("{}: '{}' is neither tcp nor file", what, value));
  }
  conf.file_store = value == "file";
}

void set_protocol(RendezvousConf& conf, const std::string& value, const std::string& what) {
  if (value != "http" && value != "https") {
    refuse_conf(fmt::format("{}: '{}' is neither http nor https", what, value));
  }
  conf.https = value == "https";
}

using Conf = RendezvousConf;
constexpr std::array kConfKeys = {
    ConfKey{"timeout", set_time<&Conf::join_timeout>},
    ConfKey{"join_timeout", set_time<&Conf::join_timeout>, "timeout"},
    ConfKey{"last_call_timeout", set_time<&Conf::last_call_timeout>},
    ConfKey{"close_timeout", check_time},
    ConfKey{"heartbeat_timeout", check_time},
    ConfKey{"keep_alive_interval", set_time<&Conf::heartbeat_interval>},
    ConfKey{"keep_alive_max_attempt", set_attempts},
    ConfKey{"read_timeout", set_time<&Conf::read_timeout>},
    ConfKey{"is_host", set_is_host},
    ConfKey{"store_type", set_store_type},
    ConfKey{"rank", set_conf_rank},
    ConfKey{"protocol", set_protocol},
    ConfKey{"ca_cert", set_conf_text<&Conf::ca_cert>},
    ConfKey{"cacert", set_conf_text<&Conf::ca_cert>, "ca_cert"},
    ConfKey{"ssl_cert", set_conf_text<&Conf::ssl_cert>},
    ConfKey{"cert", set_conf_text<&Conf::ssl_cert>, "ssl_cert"},
    ConfKey{"ssl_cert_key", set_conf_text<&Conf::ssl_cert_key>},
    ConfKey{"key", set_conf_text<&Conf::ssl_cert_key>, "ssl_cert_key"},
    ConfKey{"etcd_prefix", set_conf_text<&Conf::etcd_prefix>},
};

const ConfKey& find_conf_key(const std::string& name, const std::string& what) {
  std::vector<std::string> names;
  for (const ConfKey& key : kConfKeys) {
    if (key.name == name) return key;
    names.emplace_back(key.name);
  }
  std::string list;
  for (const auto& each : names) list += (list.empty() ? "" : ", ") + each;
  refuse_conf(fmt::format("{}: unknown key '{}'{} (there are: {})", what, name,
                          did_you_mean(name, names), list));
}

/// A leased key represents an agent; its time to live must not exceed the store's limit.
void check_silence(const RendezvousConf& conf, const std::string& what) {
  const auto most = kMaxLeaseTtl / conf.heartbeat_attempts;
  if (conf.heartbeat_interval >= 1ms && conf.heartbeat_interval <= most) return;
  refuse_conf(fmt::format(
      "{}: keep_alive_interval={}: from 0.001 to {} s are allowed with keep_alive_max_attempt={}",
      what, std::chrono::duration<double>(conf.heartbeat_interval).count(),
      std::chrono::duration<double>(most).count(), conf.heartbeat_attempts));
}

}  // namespace

std::string parse_rendezvous_backend(const std::string& name, const std::string& what) {
  static const std::vector<std::string> kBackends = {"static", "c10d", "etcd", "etcd-v2", "file"};
  if (std::find(kBackends.begin(), kBackends.end(), name) != kBackends.end()) return name;
  if (name == "parallel")
    return "static";  // of torch_npu_run: a fixed number of hosts, host 0 serves
  refuse_conf(
      fmt::format("{}: there is no rendezvous backend '{}'{} (there are: static, c10d, etcd, "
                  "etcd-v2, file)",
                  what, name, did_you_mean(name, kBackends)));
}

RendezvousConf parse_rendezvous_conf(const std::string& text, const std::string& what) {
  RendezvousConf conf;
  std::set<std::string_view> given;
  const auto inner = [](std::string_view part) { return std::string(trimmed(part, " \t")); };
  if (inner(text).empty()) return conf;
  for (const std::string& item : split(text, ',')) {
    const size_t equals = item.find('=');
    const std::string name = inner(item.substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : inner(item.substr(equals + 1));
    if (name.empty() || value.empty()) {
      refuse_conf(fmt::format("{}: '{}' is not KEY=VALUE", what, item));
    }
    const ConfKey& key = find_conf_key(name, what);
    const bool first = given.insert(key.same_as.empty() ? key.name : key.same_as).second;
    if (!first) refuse_conf(fmt::format("{}: {} is given twice", what, name));
    key.apply(conf, value, what + " " + name);
  }
  conf.silence_given =
      given.count("keep_alive_interval") + given.count("keep_alive_max_attempt") > 0;
  check_silence(conf, what);
  return conf;
}

std::chrono::milliseconds parse_seconds(const std::string& text, const std::string& what) {
  size_t used = 0;
  double number = -1;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || !(number >= 0 && number <= 1e9)) {
    refuse_conf(fmt::format("{}: '{}' is not a number of seconds", what, text));
  }
  return std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(number));
}

}  // namespace lockstep::inline internal
