#!/usr/bin/env python3
"""The files of examples/cluster are sound: cluster_files.py SOURCE. One line for each fault, and then exit code 1.

* Each document of a manifest is valid by its published schema (tests/cluster/schemas), which allows no field
  that it does not name.
* What a manifest refers to is there: a volume, the pods of the Service, the operator's container.
* Each field of a manifest, misspelt, is found; so is a number in the place of a text.
* lockstep.def does what the Containerfile does, with the same arguments, and takes all files of a build.
"""

import copy
import json
import os
import re
import subprocess
import sys

import jsonschema
import yaml

MANIFESTS = ("job.yaml", "pytorchjob.yaml")
FOLDER = "examples/cluster"
KINDS = {("v1", "Service"), ("batch/v1", "Job"), ("kubeflow.org/v1", "PyTorchJob")}
SECTIONS = {"arguments", "files", "post", "runscript"}

os.chdir(sys.argv[1])


def read(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def read_schemas():
    definitions = {}
    for name in ("kubernetes.json", "kubeflow.json"):
        definitions.update(json.loads(read(f"tests/cluster/schemas/{name}"))["definitions"])
    return {kind: jsonschema.Draft7Validator({"$ref": f"#/definitions/{kind}", "definitions": definitions})
            for _, kind in KINDS}


def pod_of(document):
    """The pod's specification; None for a kind without pods."""
    spec = document.get("spec", {})
    if document["kind"] == "PyTorchJob":
        spec = spec.get("pytorchReplicaSpecs", {}).get("Worker", {})
    return spec.get("template", {}).get("spec")


def faults_of_pod(pod):
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    for container in pod["containers"]:
        if "image" not in container:
            yield f"container {container['name']} has no image"
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                yield f"container {container['name']} mounts {mount['name']}, which is no volume"
        for variable in container.get("env", []):
            if ("value" in variable) == (len(variable.get("valueFrom", {})) == 1):
                yield f"variable {variable['name']} has neither or both of value and one valueFrom"


def faults_of_job(job):
    spec = job["spec"]
    if spec.get("completionMode") != "Indexed":
        yield "completionMode is not Indexed"
    if spec.get("completions") is None or spec["completions"] != spec.get("parallelism"):
        yield "completions differs from parallelism: pods meet only if all run at once"
    if spec["template"]["spec"].get("restartPolicy") not in ("Never", "OnFailure"):
        yield "restartPolicy is not Never or OnFailure"


def faults_of_service(service, job):
    spec = service["spec"]
    if spec.get("clusterIP") != "None":
        yield "clusterIP is not None: pods would have no names"
    if not spec.get("ports"):
        yield "no ports"
    if spec.get("selector") != {"job-name": job["metadata"]["name"]}:
        yield "its selector is not the Job's name"
    if service["metadata"].get("name") != pod_of(job).get("subdomain"):
        yield "its name is not the subdomain of the pods"


def faults_of_pytorchjob(job):
    for name, replicas in job["spec"]["pytorchReplicaSpecs"].items():
        if name not in ("Master", "Worker"):
            yield f"replicas {name}: the operator knows Master and Worker"
        if replicas.get("restartPolicy") not in ("Always", "OnFailure", "Never", "ExitCode"):
            yield f"restartPolicy of {name} is not Always, OnFailure, Never or ExitCode"
        if "pytorch" not in [one["name"] for one in replicas["template"]["spec"]["containers"]]:
            yield f"{name} has no container pytorch, for which the operator looks"
    if job["spec"].get("elasticPolicy", {}).get("rdzvBackend") != "c10d":
        yield "rdzvBackend is not c10d"


def faults_of_manifest(documents, schemas):
    """By the schemas; then, if these find nothing, by what Kubernetes looks up."""
    found = []
    for document in documents:
        kind = document.get("kind")
        if (document.get("apiVersion"), kind) not in KINDS:
            return [f"no schema for {kind} of {document.get('apiVersion')}"]
        for error in schemas[kind].iter_errors(document):
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
            found.append(f"{kind}{place}: {error.message}")
    if found:
        return found
    job = next((document for document in documents if pod_of(document)), None)
    if job is None:
        return ["no document has pods"]
    for document in documents:
        kind = document["kind"]
        checks = {"Job": lambda: faults_of_job(document), "Service": lambda: faults_of_service(document, job),
                  "PyTorchJob": lambda: faults_of_pytorchjob(document)}
        found += [f"{kind}: {fault}" for fault in checks[kind]()]
        if "name" not in document["metadata"]:
            found.append(f"{kind}: it has no name")
    return found + [f"{job['kind']}: {fault}" for fault in faults_of_pod(pod_of(job))]


def fields_of(node, path=()):
    """The path of every field, but for the names of resources, which anyone may add to."""
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in entries:
        if isinstance(node, dict) and path[-1:] != ("limits",):
            yield path + (key,)
        yield from fields_of(value, path + (key,))


def faults_of_mutants(documents, schemas):
    """Mistakes that the checks above do not find."""
    mutants = []
    for path in fields_of(documents):
        mutant = copy.deepcopy(documents)
        parent = mutant
        for part in path[:-1]:
            parent = parent[part]
        if path[-1] in ("value", "image", "mountPath", "restartPolicy"):
            parent[path[-1]] = 2
            mutants.append((f"{path[-1]}: 2", copy.deepcopy(mutant)))
        parent[path[-1] + "x"] = parent.pop(path[-1])
        mutants.append((f"{path[-1]} misspelt as {path[-1]}x", mutant))
    if len(mutants) < 50:
        yield f"only {len(mutants)} mistakes were tried"
    for what, mutant in mutants:
        if not faults_of_manifest(mutant, schemas):
            yield f"nothing finds {what}"


def check_manifests():
    schemas = read_schemas()
    for name in MANIFESTS:
        documents = list(yaml.safe_load_all(read(f"{FOLDER}/{name}")))
        found = faults_of_manifest(documents, schemas) or faults_of_mutants(documents, schemas)
        yield from (f"{FOLDER}/{name}: {fault}" for fault in found)


def parse_containerfile(text):
    """Its arguments with their defaults, and its commands in their order."""
    arguments, commands = {}, []
    for line in re.sub(r"\\\n", " ", text).split("\n"):
        word, _, rest = line.partition(" ")
        if word == "ARG":
            name, _, value = rest.partition("=")
            arguments[name.lower()] = value
        elif word == "WORKDIR":
            commands.append(f"cd {rest}")
        elif word == "RUN":
            commands += [" ".join(command.split()) for command in rest.split("&&")]
    return arguments, commands


def parse_definition(text):
    """Its header, and the lines of its sections."""
    header, sections, lines = {}, {}, None
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith("%"):
            lines = sections.setdefault(line[1:], [])
        elif line and not line.startswith("#"):
            if lines is not None:
                lines.append(line)
            else:
                name, _, value = line.partition(": ")
                header[name] = value
    return header, sections


def files_of_a_build():
    """What the repository has on top, without what no installation reads."""
    # A clone may be another user's.
    tracked = subprocess.run(["git", "-c", "safe.directory=*", "ls-files"], capture_output=True, text=True).stdout.split("\n")
    names = {name.split("/")[0] for name in tracked if name} or set(os.listdir("."))
    left_out = {"LICENSE", "docs", "fuzz", "build", "data", "runs", "logs"}
    return {name for name in names - left_out if not name.startswith(".") and not name.endswith(".md")}


def faults_of_definition(text):
    header, sections = parse_definition(text)
    arguments, commands = parse_containerfile(read(f"{FOLDER}/Containerfile"))
    if header != {"Bootstrap": "docker", "From": "{{ base }}"} or set(sections) != SECTIONS:
        yield f"header {header} and sections {sorted(sections)} are not those of a recipe from a base image"
        return
    if dict(line.split("=", 1) for line in sections["arguments"]) != arguments:
        yield f"%arguments {sections['arguments']}, in the Containerfile {arguments}"
    if set(re.findall(r"\{\{ (\w+) \}\}", text)) != set(arguments):
        yield "an argument is not used, or is not declared"
    # Only an image with layers forgets the index of packages twice, has a user and a folder of its own.
    wanted = [re.sub(r"\$\{(\w+)\}", lambda match: "{{ " + match[1].lower() + " }}", command) for command in commands
              if not re.match(r"rm -rf /var/lib/apt/lists/\*$|useradd |cd /home/", command)]
    if sections["post"] != wanted:
        yield f"%post does {sections['post']}, the Containerfile {wanted}"
    files = [line.split() for line in sections["files"]]
    if {place for _, place in files} != {"/usr/src/lockstep/"} or "cd /usr/src/lockstep" not in sections["post"]:
        yield "%files go elsewhere than the build begins"
    if {name for name, _ in files} != files_of_a_build():
        yield f"%files and the files of a build differ by {sorted({name for name, _ in files} ^ files_of_a_build())}"
    if sections["runscript"] != ['exec lockstep "$@"']:
        yield "%runscript does not start lockstep"


def check_definition():
    text = read(f"{FOLDER}/lockstep.def")
    yield from (f"{FOLDER}/lockstep.def: {fault}" for fault in faults_of_definition(text))
    for what, mistake in (("a package", ("libmunge2", "libmunge3")), ("a file", ("    cmake /", "    cmaek /")),
                          ("an argument", ("torch=\n", "trch=\n")), ("a section", ("%post", "%pots"))):
        wrong = text.replace(*mistake)
        if wrong == text or not list(faults_of_definition(wrong)):
            yield f"{FOLDER}/lockstep.def: nothing finds {what} misspelt"


def main():
    faults = list(check_manifests()) + list(check_definition())
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
