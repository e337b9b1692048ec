#include <fmt/format.h>

#include "lockstep/train/config/registered_task.h"
#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/task_settings.h"
#include "lockstep/train/config/yaml_writer.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kNone = "None";

void read_resume(ConfigSection& section, ModelConfig& config) {
  section.record(
      "resume", "True, False or a checkpoint", yaml_flag(config.resume),
      "resumes from a checkpoint; `DIR/train_resume.ckpt` is the newest in DIR, and True "
      "the newest in `train.ckpt_save_dir`");
  const Node* node = section.any("resume");
  if (!section.has("resume")) {
    section.read("resume", config.resume, "");
  } else if (!read_flag(*node, &config.resume)) {
    section.read("resume", config.resume_path, "");
    config.resume = true;
  }
}

}  // namespace

int64_t ModelConfig::num_classes() const {
  if (type == ModelType::kDet) return 0;
  return type == ModelType::kRec ? head.out_channels : head.num_classes;
}

std::string ModelConfig::name() const {
  if (!given_name.empty()) return given_name;
  if (network) return network->name;
  return fmt::format("{}-{}-{}", backbone.name, neck.name.empty() ? kNone : neck.name, head.name);
}

namespace {

/// A registered network, which takes the place of backbone, neck and head.
void read_network(ConfigSection& section, ModelConfig& config) {
  section.only("backbone", {""}, "model.network takes its place");
  section.only("neck", {""}, "model.network takes its place");
  if (networks().parts().empty()) {
    section.fail("network", "names a network, and this program has none: --plugin FILE adds some");
  }
  ConfigSection own = section.section("network");
  refuse_unknown(own, "name", names_of(networks().parts()), "networks");
  std::string name;
  config.network = read_part(own, "name", name, {}, networks(), "of the zoo, or registered");
  own.finish();
  task_settings(config.type).read_head_of_network(section, config);
}

}  // namespace

void read_weights(ConfigSection& section, std::string& weights, const std::string& known,
                  bool by_default, const std::string& about) {
  const std::string key = "pretrained";
  section.record(key, "a file, an address, True or False", by_default ? yaml_flag(true) : "",
                 about);
  if (by_default && !section.present(key)) section.read(key, by_default, "");
  const Node* node = section.any(key);
  bool flag = false;
  if (!section.has(key)) return;
  if (!read_flag(*node, &flag)) return section.read(key, weights, "");
  if (flag && known.empty() && section.settings() == nullptr) {
    section.fail(key, "cannot be True, no weights are known for this name: name a file");
  }
  if (flag) weights = known;
}

namespace {

/// The network of a built-in task, by its parts or by name.
void read_built_in_network(ConfigSection& section, ModelConfig& config) {
  section.record("network", "a mapping", "",
                 "*ours*: a network by name, in the place of backbone, neck and head, with its "
                 "settings");
  if (section.has("network")) {
    read_network(section, config);
  } else {
    const auto& task = task_settings(config.type);
    config.backbone = read_all_of(section.section("backbone"), task.read_backbone);
    task.read_neck_and_head(section, config);
  }
  section.any("network");
}

}  // namespace

ModelConfig read_model(ConfigSection section) {
  ModelConfig config;
  read_type(section, config);
  if (!config.task) section.only("transform", {""}, "no network here transforms its images first");
  section.read("name", config.given_name, "for the log");
  if (!config.task) read_built_in_network(section, config);
  read_weights(section, config.pretrained, "", false, "weights of the whole network");
  read_resume(section, config);
  section.finish();
  return config;
}

}  // namespace lockstep::inline internal
