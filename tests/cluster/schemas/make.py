#!/usr/bin/env python3
"""Writes kubernetes.json and kubeflow.json anew, from packages of PyPI: make.py FOLDER

FOLDER has kubernetes_validate/ and kubeflow/, as this makes it:
  pip install --target FOLDER --no-deps kubernetes-validate==1.37.0 kubeflow-training==1.9.4
Both have the licence Apache-2.0. Of their schemas the files have the structure alone: each definition that the
manifests of examples/cluster reach, with all of its fields, and no other field allowed. A definition that none
reaches is left open. Needs python3-yaml.
"""

import ast
import json
import os
import re
import sys

import yaml

KUBERNETES = "1.28.0"  # an old one: those that follow take its fields, too
HERE = os.path.dirname(os.path.abspath(__file__))
MANIFESTS = [os.path.join(HERE, "../../../examples/cluster", name) for name in ("job.yaml", "pytorchjob.yaml")]
SCALARS = {"str": "string", "int": "integer", "bool": "boolean", "datetime": "string"}


def short(name):
    """PodSpec for io.k8s.api.core.v1.PodSpec, V1PodSpec and KubeflowOrgV1PodSpec."""
    return re.sub(r"^(KubeflowOrg)?V\d+", "", name.split(".")[-1])


def plain(schema):
    """Fields, types and references, without texts."""
    if "$ref" in schema:
        return {"$ref": "#/definitions/" + short(schema["$ref"].split("/")[-1])}
    kept = {key: schema[key] for key in ("enum", "required") if key in schema}
    kinds = schema.get("type", [])
    kinds = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null"]
    if kinds:
        kept["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "oneOf" in schema:
        kept["oneOf"] = [plain(one) for one in schema["oneOf"]]
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            kept[key] = plain(schema[key])
    if "properties" in schema:
        kept["properties"] = {name: plain(one) for name, one in schema["properties"].items()}
        kept["additionalProperties"] = False
    return kept


def kubernetes_definitions(folder):
    folder = f"{folder}/kubernetes_validate/kubernetes-json-schema/v{KUBERNETES}-local"
    with open(f"{folder}/_definitions.json", encoding="utf-8") as file:
        every = json.load(file)["$defs"]
    core = {name: one for name, one in every.items()
            if re.match(r"io\.k8s\.(api\.(core|batch)\.v1|apimachinery\.pkg\.(api|apis\.meta\.v1|util).*)\.\w+$", name)}
    definitions = {}
    for name, one in core.items():
        assert short(name) not in definitions, name
        definitions[short(name)] = plain(one)
    for kind, version in (("Job", "batch/v1"), ("Service", "v1")):
        close_kind(definitions, kind, version)
    return definitions


def type_of(text):
    """The schema of a type in the words of a generated model: dict(str, list[V1Container])."""
    several = re.match(r"(?:list\[(.*)\]|dict\(str, (.*)\))$", text)
    if several and several[1]:
        return {"type": "array", "items": type_of(several[1])}
    if several:
        return {"type": "object", "additionalProperties": type_of(several[2])}
    return {"type": SCALARS[text]} if text in SCALARS else {"$ref": "#/definitions/" + short(text)}


def kubeflow_definitions(folder):
    """From the classes of the models: their types, their fields, and which of these may not be None."""
    folder, definitions = f"{folder}/kubeflow/training/models", {}
    for name in sorted(os.listdir(folder)):
        with open(f"{folder}/{name}" if name.endswith(".py") else os.devnull, encoding="utf-8") as file:
            text = file.read()
        kind = re.search(r"^class (KubeflowOrgV1\w+)\(", text, re.MULTILINE)
        if not kind:
            continue
        types, fields = (ast.literal_eval(re.search(rf"    {table} = (\{{.*?\n    \}})", text, re.DOTALL)[1])
                         for table in ("openapi_types", "attribute_map"))
        required = re.findall(r"Invalid value for `(\w+)`, must not be `None`", text)
        definitions[short(kind[1])] = {
            **({"required": sorted({fields[one] for one in required})} if required else {}), "type": "object",
            "properties": {fields[one]: type_of(types[one]) for one in types}, "additionalProperties": False}
    close_kind(definitions, "PyTorchJob", "kubeflow.org/v1")
    definitions["PyTorchJobSpec"]["required"] = ["pytorchReplicaSpecs"]  # the operator takes a job without runPolicy
    return definitions


def close_kind(definitions, kind, version):
    definitions[kind]["required"] = ["apiVersion", "kind", "metadata", "spec"]
    definitions[kind]["properties"].update({"apiVersion": {"enum": [version]}, "kind": {"enum": [kind]}})


def reached_by(node, schema, definitions):
    """The definitions that a manifest needs."""
    if "$ref" in schema:
        name = schema["$ref"].split("/")[-1]
        return {name} | reached_by(node, definitions[name], definitions)
    names = set()
    for value in node if isinstance(node, list) else ():
        names |= reached_by(value, schema.get("items", {}), definitions)
    for key, value in node.items() if isinstance(node, dict) else ():
        free = schema.get("additionalProperties") or {}
        names |= reached_by(value, schema.get("properties", {}).get(key, free), definitions)
    return names


def write(name, comment, definitions, reached):
    """A field a line; definitions that no manifest reaches are open."""
    lines = []
    for kind in sorted(reached & definitions.keys()):
        one = definitions[kind]
        fields = ",\n".join(f"        {json.dumps(key)}: {json.dumps(opened(field, reached))}"
                            for key, field in sorted(one.get("properties", {}).items()))
        rest = json.dumps({key: value for key, value in one.items() if key != "properties"})[1:-1]
        body = f'{rest},\n      "properties": {{\n{fields}\n      }}' if fields else rest
        lines.append(f'    "{kind}": {{\n      {body}\n    }}')
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
        file.write(f'{{\n  "$comment": {json.dumps(comment)},\n  "definitions": {{\n')
        file.write(",\n".join(lines) + "\n  }\n}\n")


def opened(schema, reached):
    if "$ref" in schema:
        return schema if schema["$ref"].split("/")[-1] in reached else {}
    return {key: opened(value, reached) if isinstance(value, dict) else value for key, value in schema.items()}


def main():
    kubernetes, kubeflow = kubernetes_definitions(sys.argv[1]), kubeflow_definitions(sys.argv[1])
    definitions, reached = {**kubeflow, **kubernetes}, set()
    for name in MANIFESTS:
        with open(name, encoding="utf-8") as file:
            for document in yaml.safe_load_all(file):
                reached |= reached_by(document, {"$ref": f"#/definitions/{document['kind']}"}, definitions)
    origin = "Structure of schemas of {} ({}, Apache-2.0), written by make.py"
    write("kubernetes.json", origin.format(f"Kubernetes {KUBERNETES}", "kubernetes-validate 1.37.0"), kubernetes, reached)
    write("kubeflow.json", origin.format("Kubeflow's training operator 1.9", "kubeflow-training 1.9.4"), kubeflow, reached)


main()
