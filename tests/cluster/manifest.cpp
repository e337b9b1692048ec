// Kubernetes' reading of a manifest, as far as it concerns a container's start:
//
//   manifest environment FILE INDEX  the variables of pod INDEX, a line each
//   manifest command FILE            the words of its command, a line each
//
// tests/system/cluster_files.py checks that the manifest is valid.

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

/// A field by its path, "spec.template.spec"; an undefined node if there is none.
YAML::Node at(const YAML::Node& document, const std::string& path) {
  YAML::Node node = YAML::Clone(document);
  size_t begin = 0;
  while (begin <= path.size() && node.IsDefined()) {
    const size_t end = std::min(path.find('.', begin), path.size());
    node.reset(node.IsMap() ? node[path.substr(begin, end - begin)] : YAML::Node());
    begin = end + 1;
    if (!node.IsDefined() || node.IsNull()) return YAML::Node(YAML::NodeType::Undefined);
  }
  return node;
}
std::string text(const YAML::Node& document, const std::string& path) {
  const YAML::Node node = at(document, path);
  return node.IsDefined() && node.IsScalar() ? node.as<std::string>() : "";
}

std::string kind_of(const YAML::Node& document) {
  return text(document, "kind");
}
/// Path of the pod's template in a workload; empty if it has no pods.
std::string template_path(const YAML::Node& document) {
  if (kind_of(document) == "Job") return "spec.template";
  if (kind_of(document) == "PyTorchJob") return "spec.pytorchReplicaSpecs.Worker.template";
  return "";
}
YAML::Node workload(const std::vector<YAML::Node>& documents) {
  for (const auto& document : documents) {
    if (!template_path(document).empty()) return document;
  }
  std::fprintf(stderr, "manifest: error: neither a Job nor a PyTorchJob\n");
  std::exit(2);
}
YAML::Node container(const YAML::Node& document) {
  return at(document, template_path(document) + ".spec.containers")[0];
}

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Variables that the kubelet and the controller add to the manifest's.
Variables added_variables(const YAML::Node& document, const std::string& index) {
  const std::string name = text(document, "metadata.name");
  Variables variables = {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
                         {"KUBERNETES_SERVICE_PORT", "443"}};
  if (kind_of(document) == "Job") {
    variables.emplace_back("HOSTNAME", name + "-" + index);
    variables.emplace_back("JOB_COMPLETION_INDEX", index);
    return variables;
  }
  const auto policy = [&](const char* field) {
    return text(document, std::string("spec.elasticPolicy.") + field);
  };
  variables.emplace_back("HOSTNAME", name + "-worker-" + index);
  variables.emplace_back("PYTHONUNBUFFERED", "0");
  variables.emplace_back("PET_RDZV_ENDPOINT", name + "-worker-0:23456");
  variables.emplace_back("PET_RDZV_BACKEND", policy("rdzvBackend"));
  variables.emplace_back("PET_NNODES", policy("minReplicas") + ":" + policy("maxReplicas"));
  variables.emplace_back("PET_MAX_RESTARTS", policy("maxRestarts"));
  return variables;
}

std::string value_of(const YAML::Node& variable, const std::string& index) {
  const std::string field = text(variable, "valueFrom.fieldRef.fieldPath");
  if (field == "metadata.annotations['batch.kubernetes.io/job-completion-index']") return index;
  if (!text(variable, "valueFrom.secretKeyRef.key").empty()) return "between-us";
  return text(variable, "value");
}

int print_environment(const std::vector<YAML::Node>& documents, const std::string& index) {
  const YAML::Node main = workload(documents);
  Variables variables = added_variables(main, index);
  for (const auto& variable : container(main)["env"])
    variables.emplace_back(text(variable, "name"), value_of(variable, index));
  for (const auto& [name, value] : variables) std::printf("%s=%s\n", name.c_str(), value.c_str());
  return 0;
}

int print_command(const std::vector<YAML::Node>& documents) {
  for (const auto& word : container(workload(documents))["command"])
    std::printf("%s\n", word.as<std::string>().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() >= 2) {
    const auto documents = YAML::LoadAllFromFile(words[1]);
    if (words[0] == "command") return print_command(documents);
    if (words[0] == "environment" && words.size() == 3)
      return print_environment(documents, words[2]);
  }
  std::fprintf(stderr, "usage: manifest command FILE, manifest environment FILE INDEX\n");
  return 2;
}
