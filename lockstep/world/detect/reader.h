#pragma once
// The input of a probe, with errors that name the wrong variable.

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/world/environment.h"
#include "lockstep/world/identity.h"

namespace lockstep::inline internal {

inline constexpr int kMaxRanks = 1 << 24;

/// Data about this process that a PMIx server has and no variable.
struct PmixJob {
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
};

/// The whole input of the decision about an identity.
struct Inputs {
  Environment variables;
  /// A file that a variable names. Errors: kNotFound, kIo.
  std::function<std::string(const std::string& path)> read_file;
  /// The same for a file with a secret. Errors: kInvalidArgument if others could read it.
  std::function<std::string(const std::string& path)> read_secret;
  /// Errors: kUnavailable (no libpmix.so.2, no server), kNotFound.
  std::function<PmixJob()> ask_pmix;
  /// Whether this is an address, or a name, of this host.
  std::function<bool(const std::string& host)> is_own_host;
  /// Whether this process runs in a terminal, below the process of that number.
  std::function<bool(const std::string& process)> typed_below;
  /// Whether this is an address, or a name that can be resolved.
  std::function<bool(const std::string& host)> knows_host = [](const std::string&) { return true; };
  /// Whether there is a munged on this host.
  std::function<bool()> has_munge = [] { return false; };
  /// Why there is none although libmunge is installed. Empty: no remark.
  std::function<std::string()> why_no_munge = [] { return std::string(); };
};

/// Reads variables, and records their names and remarks about them.
class Reader {
 public:
  explicit Reader(const Inputs& inputs) : inputs_(inputs) {}

  /// Nothing if it is unset or empty.
  std::optional<std::string> text(const std::string& name) const;
  /// `because` completes "X is not set, but ...".
  std::string need(const std::string& name, const std::string& because) const;
  /// For need(): the set ones of `names`, as "RANK is" or "RANK and LOCAL_RANK are".
  std::string which_are(std::initializer_list<const char*> names) const;
  int need_number(const std::string& name, const std::string& because, int lo, int hi) const;
  std::optional<int> maybe_number(const std::string& name, int lo, int hi) const;
  /// The first of these variables that is set.
  std::optional<std::string> first_of(std::initializer_list<const char*> names) const;
  std::string file(const std::string& path) const { return inputs_.read_file(path); }

  PmixJob pmix_job() const { return inputs_.ask_pmix(); }
  bool typed_below(const std::string& process) const { return inputs_.typed_below(process); }
  bool is_own_host(const std::string& host) const { return inputs_.is_own_host(host); }
  bool knows_host(const std::string& host) const { return inputs_.knows_host(host); }
  bool has_munge() const { return inputs_.has_munge(); }
  std::string why_no_munge() const { return inputs_.why_no_munge(); }
  /// LOCKSTEP_SECRET, else the content of LOCKSTEP_SECRET_FILE, else nothing.
  std::string secret() const;

  void note(const std::string& text) const { notes_.push_back(text); }
  const std::vector<std::string>& notes() const { return notes_; }
  /// Names of the variables that were read and set, in that order.
  const std::vector<std::string>& used() const { return used_; }

 private:
  const Inputs& inputs_;
  mutable std::vector<std::string> used_;
  mutable std::vector<std::string> notes_;
};

/// The variables with a launcher's ranks, for messages.
struct RankNames {
  std::string rank, size, local_rank, local_size, node_rank, num_nodes;
};

/// Throws kInvalidArgument: "environment: TEXT".
[[noreturn]] void contradict(const std::string& text);
/// Throws unless `value` of variable `a` is below `bound` of variable `b`; kUnknownNumber passes.
void check_less(const std::string& a, int value, const std::string& b, int bound);
/// Checks that every rank is below its size, and that sizes are possible.
void check_ranges(const Identity& id, const RankNames& names);

/// Address of rank 0's store for ranks whose launcher has no store. MASTER_ADDR and
/// MASTER_PORT if set; else loopback if all ranks are on one host; else `host` (may be empty:
/// unknown).
Endpoint read_master(const Reader& read, const Identity& id, const std::string& host = "");

}  // namespace lockstep::inline internal
