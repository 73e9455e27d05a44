"""The deployment files as Python objects: what the tests of this folder look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
COMPOSE = ROOT / "docker-compose.yml"
KUBERNETES = ROOT / "k8s"
OVERLAYS = sorted(path.parent for path in KUBERNETES.glob("overlays/*/kustomization.yaml"))
OUR_IMAGE = "streamgrove"


class UniqueKeys(yaml.SafeLoader):  # type: ignore[misc]  # it comes without types
    """YAML without duplicate keys: PyYAML would silently take the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value if key.value != "<<"]
        duplicates = {key for key in keys if keys.count(key) > 1}
        assert not duplicates, f"duplicate keys {duplicates} {node.start_mark}"
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.load_all(path.read_text(), UniqueKeys) if document is not None]


@cache
def compose() -> dict[str, Any]:
    (document,) = documents(COMPOSE)
    return document


def compose_schema() -> dict[str, Any]:
    """The compose specification's schema, as check-jsonschema ships it."""
    schema = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    json_schema: dict[str, Any] = json.loads(schema.read_text())
    return json_schema


def our_services() -> dict[str, dict[str, Any]]:
    return {
        name: service
        for name, service in compose()["services"].items()
        if service["image"].startswith(f"{OUR_IMAGE}:")
    }


def kustomizations() -> list[Path]:
    return sorted(KUBERNETES.rglob("kustomization.yaml"))


@dataclass(frozen=True)
class Manifest:
    """One Kubernetes object of a file that a kustomization lists under `resources`."""

    path: Path
    document: dict[str, Any]

    @property
    def identity(self) -> tuple[str, str]:
        return self.document["kind"], self.document["metadata"]["name"]

    def pod(self) -> dict[str, Any] | None:
        """The pod spec of a workload, None for other objects."""
        spec = self.document.get("spec", {})
        return spec["template"]["spec"] if "template" in spec else None

    def containers(self) -> list[dict[str, Any]]:
        pod = self.pod()
        return [] if pod is None else [*pod.get("initContainers", []), *pod["containers"]]

    def __str__(self) -> str:
        return self.path.relative_to(KUBERNETES).as_posix()


def resources(directory: Path) -> Iterator[Manifest]:
    """The objects of a kustomization, of what it builds on, and of its components."""
    (kustomization,) = documents(directory / "kustomization.yaml")
    for entry in [*kustomization.get("resources", []), *kustomization.get("components", [])]:
        path = (directory / entry).resolve()
        if path.is_dir():
            yield from resources(path)
        else:
            yield from (Manifest(path, document) for document in documents(path))


def all_manifests() -> list[Manifest]:
    by_path = {manifest.path: manifest for overlay in OVERLAYS for manifest in resources(overlay)}
    return [by_path[path] for path in sorted(by_path)]


def env_file(path: Path) -> dict[str, str]:
    lines = (line for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


def configuration(directory: Path) -> dict[str, str]:
    """What the config map of a kustomization holds: its base's settings, its components', then its own."""
    (kustomization,) = documents(directory / "kustomization.yaml")
    merged: dict[str, str] = {}
    for entry in [*kustomization.get("resources", []), *kustomization.get("components", [])]:
        if (directory / entry).is_dir():
            merged |= configuration(directory / entry)
    for generator in kustomization.get("configMapGenerator", []):
        for name in generator["envs"]:
            merged |= env_file(directory / name)
    return merged


def few_rights(manifest: Manifest) -> Manifest:
    """Check that a pod is not root, cannot become it, and writes to volumes only."""
    pod = manifest.pod()
    assert pod is not None
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False, "a service named grove-* would set GROVE_* variables"
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] >= 10_000
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in manifest.containers():
        rights = container["securityContext"]
        assert rights["allowPrivilegeEscalation"] is False
        assert rights["readOnlyRootFilesystem"] is True
        assert rights["capabilities"] == {"drop": ["ALL"]}
        assert {"cpu", "memory"} <= set(container["resources"]["requests"])
        assert "memory" in container["resources"]["limits"]
    return manifest
