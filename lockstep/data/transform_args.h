#pragma once
// An item of a transform_pipeline, and the reading of its arguments. Private to this folder.

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// One entry of a configuration's `transform_pipeline`, e.g. {"RandomCrop", {{"padding", {4}}}}.
struct TransformSpec {
  std::string name;
  std::map<std::string, std::vector<double>> args;  ///< A single number is a list of one.
};

/// The arguments of one item. All must be consumed; finish() refuses the rest. Errors of every
/// call: kInvalidArgument, which names the transform and the argument.
class TransformArgs {
 public:
  explicit TransformArgs(const TransformSpec& spec) : spec_(spec) {}

  const std::string& name() const { return spec_.name; }

  void number(const std::string& key, double& value, double least, double most);
  /// At most a million.
  void whole(const std::string& key, int64_t& value, int64_t least);
  void list(const std::string& key, std::vector<double>& values);
  /// Two numbers in ascending order, the first at least `least`.
  void range(const std::string& key, std::pair<double, double>& value, double least);
  void finish() const;

  [[noreturn]] void fail(const std::string& key, const std::string& must) const;

 private:
  const std::vector<double>* take(const std::string& key);

  const TransformSpec& spec_;
  std::vector<std::string> known_;
};

}  // namespace lockstep
