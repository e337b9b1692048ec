#pragma once
// An item of a transform_pipeline, and the reading of its arguments.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::inline internal {

/// One entry of a configuration's `transform_pipeline`, e.g. {"RandomCrop", {{"padding", {4}}}}.
struct TransformSpec {
  std::string name;
  std::map<std::string, std::vector<double>> args;  ///< A single number is a list of one.
};

/// An argument as the maker of its transform describes it.
struct TransformArgument {
  std::string key;
  std::string kind;      ///< "a number from 0 to 1".
  std::string fallback;  ///< "0.5", "[0.08, 1]"; "required" where there is none.
  std::string about;     ///< One line; empty: the manual leaves it out.
};

/// Those of each transform, by its name.
using TransformArguments = std::map<std::string, std::vector<TransformArgument>>;

/// The arguments of one item. All must be consumed; finish() refuses the rest. A value keeps its
/// default if its argument is not given, so that the default stands in its struct alone. Errors of
/// every call: kInvalidArgument, which names the transform and the argument.
class TransformArgs {
 public:
  explicit TransformArgs(const TransformSpec& spec) : spec_(spec) {}
  /// Of no item: each call adds its argument to `described`. The value is the default.
  explicit TransformArgs(std::vector<TransformArgument>& described);

  const std::string& name() const { return spec_.name; }
  /// No argument is given, not even a required one, and the result is not used.
  bool only_describes() const { return described_ != nullptr; }

  // `about`: a line for the manual. Without it the manual leaves the argument out.

  /// `kind`: in the place of "a number from `least` to `most`".
  void number(const std::string& key, double& value, double least, double most,
              const std::string& about = "", const std::string& kind = "");
  /// At most a million.
  void whole(const std::string& key, int64_t& value, int64_t least, const std::string& about);
  /// `values`: empty if the argument is required. `fallback`: a name of their default.
  void list(const std::string& key, std::vector<double>& values, const std::string& kind,
            const std::string& about, const std::string& fallback = "");
  /// Two numbers in ascending order, the first at least `least`.
  void range(const std::string& key, std::pair<double, double>& value, double least,
             const std::string& about);
  void finish() const;

  [[noreturn]] void fail(const std::string& key, const std::string& must) const;

 private:
  const std::vector<double>* take(const TransformArgument& argument);

  const TransformSpec& spec_;
  std::vector<std::string> known_;
  std::vector<TransformArgument>* described_ = nullptr;
};

/// The arguments that `make` reads.
template <typename Make>
std::vector<TransformArgument> described_arguments(const Make& make) {
  std::vector<TransformArgument> described;
  TransformArgs args(described);
  make(args);
  return described;
}

/// The same of a table of makers, each {name, make}.
template <typename Makers>
TransformArguments arguments_of(const Makers& makers) {
  TransformArguments all;
  for (const auto& maker : makers) all[maker.name] = described_arguments(maker.make);
  return all;
}

}  // namespace lockstep::inline internal
