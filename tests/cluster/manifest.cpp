// Kubernetes' reading of a manifest, as far as it concerns a container's start:
//
//   manifest check FILE              required fields; ends with 1 and a line for each that is wrong
//   manifest environment FILE INDEX  the variables of pod INDEX, a line each
//   manifest command FILE            the words of its command, a line each
//
// Facts of the API: batch/v1 Job and v1 Service of Kubernetes 1.28, kubeflow.org/v1 PyTorchJob.

#include <yaml-cpp/yaml.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

int wrong = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  std::printf("%s\n", what.c_str());
  ++wrong;
}

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

void check_variable(const YAML::Node& variable) {
  const std::string name = text(variable, "name");
  const YAML::Node source = at(variable, "valueFrom");
  expect(!name.empty(), "a variable without a name");
  expect(variable["value"].IsDefined() != source.IsDefined(), name + ": value or valueFrom");
  // The API requires text; it refuses 2 without quotes, a number.
  if (variable["value"].IsDefined())
    expect(variable["value"].Tag() == "!" ||
               text(variable, "value").find_first_not_of("0123456789") != std::string::npos,
           name + ": a number must be in quotes");
  if (!source.IsDefined()) return;
  expect(source.size() == 1, name + ": one source");
  expect(
      !text(source, "fieldRef.fieldPath").empty() ||
          (!text(source, "secretKeyRef.name").empty() && !text(source, "secretKeyRef.key").empty()),
      name + ": fieldRef.fieldPath, or secretKeyRef with name and key");
}

void check_pod(const YAML::Node& pod, const std::string& where) {
  const YAML::Node containers = at(pod, "spec.containers");
  expect(containers.IsSequence() && containers.size() > 0, where + ": spec.containers");
  if (!containers.IsSequence()) return;
  std::map<std::string, bool> volumes;
  for (const auto& volume : at(pod, "spec.volumes")) volumes[text(volume, "name")] = true;
  for (const auto& one : containers) {
    expect(!text(one, "name").empty(), where + ": a container needs a name");
    expect(!text(one, "image").empty(), where + ": a container needs an image");
    for (const auto& variable : one["env"]) check_variable(variable);
    for (const auto& mount : one["volumeMounts"]) {
      expect(!text(mount, "mountPath").empty(), where + ": a mount needs a mountPath");
      expect(volumes.count(text(mount, "name")) == 1,
             where + ": no volume '" + text(mount, "name") + "'");
    }
  }
}

void check_job(const YAML::Node& job) {
  expect(text(job, "apiVersion") == "batch/v1", "Job: apiVersion batch/v1");
  expect(text(job, "spec.completionMode") == "Indexed", "Job: completionMode Indexed");
  expect(!text(job, "spec.completions").empty() &&
             text(job, "spec.completions") == text(job, "spec.parallelism"),
         "Job: completions and parallelism, which are equal");
  const std::string policy = text(job, "spec.template.spec.restartPolicy");
  expect(policy == "Never" || policy == "OnFailure", "Job: restartPolicy Never or OnFailure");
}

void check_service(const YAML::Node& service, const YAML::Node& job) {
  expect(text(service, "apiVersion") == "v1", "Service: apiVersion v1");
  expect(text(service, "spec.clusterIP") == "None", "Service: clusterIP None");
  const YAML::Node ports = at(service, "spec.ports");
  expect(ports.IsSequence() && ports.size() > 0, "Service: spec.ports");
  for (const auto& port : ports)
    expect(!text(port, "port").empty(), "Service: a port needs a port");
  // Pods of a Job have this label.
  expect(text(service, "spec.selector.job-name") == text(job, "metadata.name"),
         "Service: its selector is the Job's name");
  expect(text(service, "metadata.name") == text(job, "spec.template.spec.subdomain"),
         "Service: its name is the subdomain of the pods");
}

void check_pytorchjob(const YAML::Node& job) {
  expect(text(job, "apiVersion") == "kubeflow.org/v1", "PyTorchJob: apiVersion kubeflow.org/v1");
  const YAML::Node replicas = at(job, "spec.pytorchReplicaSpecs");
  expect(replicas.IsMap(), "PyTorchJob: spec.pytorchReplicaSpecs");
  for (const auto& entry : replicas) {
    const auto type = entry.first.as<std::string>();
    expect(type == "Master" || type == "Worker", "PyTorchJob: replicas are Master or Worker");
    bool named = false;
    for (const auto& one : at(entry.second, "template.spec.containers"))
      named = named || text(one, "name") == "pytorch";
    expect(named, "PyTorchJob: " + type + " needs a container 'pytorch'");
    const std::string policy = text(entry.second, "restartPolicy");
    expect(policy == "Always" || policy == "OnFailure" || policy == "Never" || policy == "ExitCode",
           "PyTorchJob: restartPolicy of " + type);
  }
}

int check(const std::vector<YAML::Node>& documents) {
  const YAML::Node main = workload(documents);
  for (const auto& document : documents) {
    const std::string kind = kind_of(document);
    expect(!text(document, "metadata.name").empty(), kind + ": metadata.name");
    if (kind == "Job") check_job(document);
    if (kind == "Service") check_service(document, main);
    if (kind == "PyTorchJob") check_pytorchjob(document);
    expect(kind == "Job" || kind == "Service" || kind == "PyTorchJob", "unknown kind " + kind);
  }
  check_pod(at(main, template_path(main)), kind_of(main));
  return wrong == 0 ? 0 : 1;
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
    if (words[0] == "check") return check(documents);
    if (words[0] == "command") return print_command(documents);
    if (words[0] == "environment" && words.size() == 3)
      return print_environment(documents, words[2]);
  }
  std::fprintf(stderr, "usage: manifest check|command FILE, manifest environment FILE INDEX\n");
  return 2;
}
