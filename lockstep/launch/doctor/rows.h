#pragma once
// Builds rows, for the sources of this folder.

#include <map>
#include <string>
#include <vector>

#include "lockstep/launch/doctor/checks.h"

namespace lockstep::doctor {

/// Rows of one check: each fault with all its hosts in one row; without faults, one row that
/// passes.
class RowBuilder {
 public:
  RowBuilder(std::string check, size_t num_hosts)
      : check_(std::move(check)), num_hosts_(num_hosts) {}

  /// Adds `text` of `host`; rows of equal result, text and mend become one.
  void add(CheckResult result, const std::string& host, const std::string& text,
           const std::string& mend);
  /// The rows, or the one that passes with `well`.
  CheckRows finish(const std::string& well) const;

 private:
  struct Entry {
    CheckResult result;
    std::string text;
    std::string mend;
    std::vector<std::string> hosts;
  };
  std::string check_;
  size_t num_hosts_;
  std::vector<Entry> entries_;
};

/// Values and their hosts, e.g. "4096 everywhere" or "128 on h1; 4096 on h2, h3".
std::string spread(const std::vector<std::pair<std::string, std::string>>& value_of_host);

}  // namespace lockstep::doctor
