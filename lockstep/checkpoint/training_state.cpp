#include "lockstep/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "lockstep/base/text.h"
#include "lockstep/checkpoint/file_digest.h"
#include "lockstep/checkpoint/training_state_format.h"
#include "lockstep/error.h"
#include "lockstep/version.h"

namespace lockstep::inline internal {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kOldestFormat = 2;  // its digests are of another kind

std::string to_hex(const std::string& bytes) {
  return hex_digits({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

ordered_json encode(const LossScaleState& state) {
  return {
      {"scale", state.scale}, {"clean_steps", state.clean_steps}, {"overflows", state.overflows}};
}

ordered_json encode(const MetricPoint& point) {
  return {{"epoch", point.epoch}, {"step", point.step}, {"value", point.value}};
}

/// The direction of a watched metric whose file has none.
bool is_higher_better_by_name(const std::string& metric) {
  return metric != "loss";
}

ordered_json encode(const PatienceState& state) {
  ordered_json object = {{"metric", state.metric},
                         {"best", state.best ? ordered_json(*state.best) : ordered_json()},
                         {"waited", state.waited},
                         {"times", state.times}};
  if (state.higher_is_better != is_higher_better_by_name(state.metric)) {
    object["higher_is_better"] = state.higher_is_better;
  }
  return object;
}

/// Reads an object field by field, remembers the fields that were read, and names file and field in
/// every error.
class Fields {
 public:
  Fields(const json& object, std::string file, std::string prefix)
      : object_(object), file_(std::move(file)), prefix_(std::move(prefix)) {
    if (!object_.is_object()) fail("", "is no object");
  }

  bool has(const std::string& name) const { return object_.contains(name); }
  const json& get(const std::string& name) {
    seen_.insert(name);
    const auto at = object_.find(name);
    if (at == object_.end()) fail(name, "is missing");
    return *at;
  }
  int64_t count(const std::string& name) {
    const json& value = get(name);
    if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{1} << 62) {
      fail(name, "must be a whole number of at least 0");
    }
    return value.get<int64_t>();
  }
  int positive(const std::string& name) {
    const int64_t value = count(name);
    if (value < 1 || value > std::numeric_limits<int>::max()) fail(name, "must be at least 1");
    return static_cast<int>(value);
  }
  uint64_t number(const std::string& name) {
    if (!get(name).is_number_unsigned()) fail(name, "must be a whole number of at least 0");
    return get(name).get<uint64_t>();
  }
  bool truth(const std::string& name) {
    if (!get(name).is_boolean()) fail(name, "must be true or false");
    return get(name).get<bool>();
  }
  std::string text(const std::string& name) {
    if (!get(name).is_string()) fail(name, "must be a text");
    return get(name).get<std::string>();
  }
  double real(const std::string& name) {
    if (get(name).is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!get(name).is_number()) fail(name, "must be a number or null");
    return get(name).get<double>();
  }
  std::string bytes(const std::string& name) {
    const std::string hex = text(name);
    const auto digit = [&](char c) {
      if (c >= '0' && c <= '9') return c - '0';
      if (c >= 'a' && c <= 'f') return c - 'a' + 10;
      fail(name, "must be pairs of hex digits");
    };
    if (hex.size() % 2 != 0) fail(name, "must be pairs of hex digits");
    std::string result;
    for (size_t i = 0; i < hex.size(); i += 2) {
      result += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
    }
    return result;
  }
  Fields inner(const std::string& name, const json& object) const {
    return Fields(object, file_, prefix_ + name + ".");
  }
  void no_others() const {
    for (const auto& [name, value] : object_.items()) {
      if (!seen_.contains(name)) fail(name, "is unknown");
    }
  }
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw Error(ErrorCode::kCorrupt, fmt::format("{}: '{}{}' {}", file_, prefix_, name, what));
  }

 private:
  const json& object_;
  std::string file_;
  std::string prefix_;
  std::set<std::string> seen_;
};

MetricPoint decode_point(Fields fields) {
  MetricPoint point{fields.count("epoch"), fields.count("step"), fields.real("value")};
  fields.no_others();
  return point;
}

LossScaleState decode_loss_scale(Fields fields) {
  LossScaleState state{fields.real("scale"), fields.count("clean_steps"),
                       fields.count("overflows")};
  if (!(state.scale > 0)) fields.fail("scale", "must be a number greater than 0");
  fields.no_others();
  return state;
}

PatienceState decode_patience(Fields fields) {
  PatienceState state;
  state.metric = fields.text("metric");
  if (!fields.get("best").is_null()) state.best = fields.real("best");
  state.waited = fields.count("waited");
  state.times = fields.count("times");
  state.higher_is_better = fields.has("higher_is_better") ? fields.truth("higher_is_better")
                                                          : is_higher_better_by_name(state.metric);
  fields.no_others();
  return state;
}

/// Whether `point` is strictly better than the best so far; it then is the best.
bool take_if_best(TrainingState& state, const MetricPoint& point) {
  if (!std::isfinite(point.value)) return false;  // state.json has no infinities
  const bool is_best = !state.best || (state.higher_is_better ? point.value > state.best->value
                                                              : point.value < state.best->value);
  if (is_best) state.best = point;
  return is_best;
}

/// The best of the history, for a state of an early version whose best was infinite.
void find_best(TrainingState& state) {
  state.best.reset();
  for (const MetricPoint& point : state.history) take_if_best(state, point);
}

void decode_metric(Fields fields, TrainingState& state) {
  state.metric = fields.text("name");
  state.higher_is_better = fields.truth("higher_is_better");
  if (!fields.get("value").is_null()) state.metric_value = fields.real("value");
  if (const json& best = fields.get("best"); !best.is_null()) {
    state.best = decode_point(fields.inner("best", best));
  }
  const json& history = fields.get("history");
  if (!history.is_array()) fields.fail("history", "must be a list");
  for (size_t i = 0; i < history.size(); ++i) {
    state.history.push_back(decode_point(fields.inner(fmt::format("history[{}]", i), history[i])));
  }
  if (state.best && !std::isfinite(state.best->value)) find_best(state);
  fields.no_others();
}

FileDigests decode_digests(const json& files, Fields& fields) {
  if (!files.is_object()) fields.fail("files", "must be an object");
  FileDigests digests;
  for (const auto& [name, digest] : files.items()) {
    Fields entry = fields.inner("files." + name, digest);
    const char* const kind = entry.has(kSha256) ? kSha256 : kPoly1305;
    digests[name] = {entry.count("bytes"), kind, entry.text(kind)};
    entry.no_others();
  }
  return digests;
}

void check_format(Fields& fields, const std::string& file) {
  const int64_t format = fields.count("format");
  if (format > TrainingState::kFormat) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: format {} by Lockstep {}; this is {}, which reads up to {}", file,
                            format, fields.text("written_by"), version(), TrainingState::kFormat));
  }
  if (format < kOldestFormat) {
    fields.fail("format", fmt::format("must be {} to {}", kOldestFormat, TrainingState::kFormat));
  }
  fields.text("written_by");
}

}  // namespace
}  // namespace lockstep::inline internal

namespace lockstep {

int64_t epoch_of(const TrainingState& state) {
  return std::max<int64_t>(1, state.epoch + (state.epoch_samples > 0 ? 1 : 0));
}

bool record_metric(TrainingState& state, double value) {
  const MetricPoint point{state.epoch, state.step, value};
  state.metric_value = value;
  state.history.push_back(point);
  return take_if_best(state, point);
}

void rank_by(TrainingState& state, const std::string& name, bool higher_is_better) {
  if (state.metric != name) {
    state.metric_value.reset();
    state.best.reset();
    state.history.clear();
  }
  state.metric = name;
  if (state.higher_is_better == higher_is_better) return;
  state.higher_is_better = higher_is_better;
  state.best.reset();
  for (const MetricPoint& point : state.history) take_if_best(state, point);
}

}  // namespace lockstep

namespace lockstep::inline internal {

std::string encode_training_state(const TrainingState& state, const FileDigests& files) {
  ordered_json json;
  json["format"] = TrainingState::kFormat;
  json["written_by"] = version();
  json["model"] = state.model;
  json["epoch"] = state.epoch;
  json["step"] = state.step;
  json["batch_in_epoch"] = state.batch_in_epoch;
  json["epoch_samples"] = state.epoch_samples;
  if (state.samples_digest) json["samples_digest"] = *state.samples_digest;
  if (state.dealt_anew) json["dealt_anew"] = true;
  json["epoch_loss"] = state.epoch_loss;
  if (state.epoch_items) json["epoch_items"] = *state.epoch_items;
  if (state.epoch_seconds > 0) json["epoch_seconds"] = state.epoch_seconds;
  json["samples"] = state.samples;
  json["schedule_step"] = state.schedule_step;
  if (state.dropped_batches > 0) json["dropped_batches"] = state.dropped_batches;
  if (state.loss_scale) json["loss_scale"] = encode(*state.loss_scale);
  json["seed"] = state.seed;
  json["world_size"] = state.world_size;
  json["virtual_ranks"] = state.virtual_ranks;
  ordered_json& metric = json["metric"];
  metric["name"] = state.metric;
  metric["higher_is_better"] = state.higher_is_better;
  metric["value"] = state.metric_value ? ordered_json(*state.metric_value) : ordered_json();
  metric["best"] = state.best ? encode(*state.best) : ordered_json();
  metric["history"] = ordered_json::array();
  for (const MetricPoint& point : state.history) metric["history"].push_back(encode(point));
  if (state.plateau) json["plateau"] = encode(*state.plateau);
  if (state.early_stopping) json["early_stopping"] = encode(*state.early_stopping);
  json["files"] = ordered_json::object();
  for (const auto& [name, digest] : files) {
    json["files"][name] = {{"bytes", digest.bytes}, {digest.kind, digest.hex}};
  }
  json["rng"] = to_hex(state.rng);
  return json.dump(2) + "\n";
}

DecodedTrainingState decode_training_state(const std::string& text, const std::string& file) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) throw Error(ErrorCode::kCorrupt, file + ": not JSON; it was damaged");
  Fields fields(object, file, "");
  check_format(fields, file);
  DecodedTrainingState decoded;
  TrainingState& state = decoded.state;
  state.model = fields.text("model");
  state.epoch = fields.count("epoch");
  state.step = fields.count("step");
  state.batch_in_epoch = fields.count("batch_in_epoch");
  state.epoch_samples = fields.count("epoch_samples");
  if (fields.has("samples_digest")) state.samples_digest = fields.number("samples_digest");
  state.dealt_anew = fields.has("dealt_anew") && fields.truth("dealt_anew");
  state.epoch_loss = fields.real("epoch_loss");
  if (fields.has("epoch_items")) state.epoch_items = fields.real("epoch_items");
  if (fields.has("epoch_seconds")) state.epoch_seconds = fields.real("epoch_seconds");
  state.samples = fields.count("samples");
  state.schedule_step = fields.count("schedule_step");
  if (fields.has("dropped_batches")) state.dropped_batches = fields.count("dropped_batches");
  if (fields.has("loss_scale")) {
    state.loss_scale = decode_loss_scale(fields.inner("loss_scale", fields.get("loss_scale")));
  }
  state.seed = fields.number("seed");
  state.world_size = fields.positive("world_size");
  // Checkpoints of early versions call them shards.
  state.virtual_ranks = fields.positive(fields.has("shards") ? "shards" : "virtual_ranks");
  decode_metric(fields.inner("metric", fields.get("metric")), state);
  if (fields.has("plateau")) {
    state.plateau = decode_patience(fields.inner("plateau", fields.get("plateau")));
  }
  if (fields.has("early_stopping")) {
    state.early_stopping =
        decode_patience(fields.inner("early_stopping", fields.get("early_stopping")));
  }
  decoded.files = decode_digests(fields.get("files"), fields);
  state.rng = fields.bytes("rng");
  fields.no_others();
  return decoded;
}

bool may_be_training_state(const std::string& text) {
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return true;
  return value.is_object() && value.contains("files") && value["files"].is_object();
}

const FileDigest& digest_of(const FileDigests& files, const std::string& name,
                            const std::filesystem::path& state_file) {
  const auto saved = files.find(name);
  if (saved != files.end()) return saved->second;
  throw Error(ErrorCode::kCorrupt,
              fmt::format("{}: 'files.{}' is missing", state_file.string(), name));
}

}  // namespace lockstep::inline internal
