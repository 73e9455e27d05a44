"""Every variable and every command in the deployment files is one that the program knows."""

from __future__ import annotations

import os
import re
import tomllib

import pytest

from streamapp.settings import Settings, env_name, load_settings
from streamapp.settings.sources import unknown_variables
from tests.unit.deployment.manifests import (
    OVERLAYS,
    ROOT,
    all_manifests,
    configuration,
    documents,
    our_services,
)

# What a person puts into the secret that the manifests name (docs/deployment.md).
SECRET = {"GROVE_KAFKA_SASL_USERNAME": "grove", "GROVE_KAFKA_SASL_PASSWORD": "not-a-password"}
NUMBA = {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_CACHE_DIR"}
PYTHON = {
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "PATH",
    "PIP_NO_CACHE_DIR",
    "PIP_DISABLE_PIP_VERSION_CHECK",
}


def image_environment() -> dict[str, str]:
    """The variables that the Dockerfile sets, line continuations joined."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    lines = re.findall(r"^ENV (.*)$", text, re.MULTILINE)
    return dict(pair.split("=", 1) for line in lines for pair in line.split())


def of_the_image() -> dict[str, str]:
    return {name: value for name, value in image_environment().items() if name.startswith("GROVE_")}


def environments() -> dict[str, dict[str, str]]:
    found = {
        f"compose: {name}": of_the_image() | service["environment"]
        for name, service in our_services().items()
    }
    for overlay in OVERLAYS:
        found[f"k8s: {overlay.name}"] = of_the_image() | configuration(overlay) | SECRET
    return found


@pytest.fixture
def set_environment(monkeypatch):
    """A function that makes the given variables the only ones with our prefix."""

    def set_only(variables):
        for name in [name for name in os.environ if name.startswith("GROVE_")]:
            monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_only


@pytest.mark.parametrize("where", environments())
def test_a_worker_takes_its_settings_from_the_environment_as_written(where, set_environment):
    variables = environments()[where]
    set_environment(variables)
    settings = load_settings()
    assert unknown_variables(Settings) == []
    for attribute in Settings.model_fields:
        name = env_name(attribute)
        if name in variables:
            assert str(getattr(settings, attribute)) == variables[name]


def test_an_unknown_variable_would_be_found(set_environment):
    set_environment({"GROVE_TOPIC_PARTITIONS": "8"})
    (sentence,) = unknown_variables(Settings)
    assert "GROVE_TOPIC_PARTITIONS" in sentence


def test_the_image_sets_nothing_else():
    assert set(image_environment()) <= set(of_the_image()) | NUMBA | PYTHON


def test_pods_set_nothing_that_is_not_a_setting():
    known = {env_name(attribute) for attribute in Settings.model_fields}
    for manifest in all_manifests():
        for container in manifest.containers():
            assert {variable["name"] for variable in container.get("env", [])} <= known


def test_values_of_variables_are_strings():
    """YAML's numbers and booleans would reach the process in YAML's spelling."""
    for service in our_services().values():
        assert all(isinstance(value, str) for value in service["environment"].values())


def test_pods_and_containers_are_reached_from_outside_themselves(set_environment):
    for variables in environments().values():
        assert variables["GROVE_WEB_HOST"] == "0.0.0.0"


def test_the_image_is_tagged_with_the_version_of_the_package():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    images = {service["image"] for service in our_services().values()}
    images |= {c["image"] for manifest in all_manifests() for c in manifest.containers()}
    assert images == {f"streamgrove:{version}"}


def test_the_secret_of_the_documents_is_the_one_of_the_manifests():
    page = (ROOT / "docs" / "deployment.md").read_text()
    (name,) = {
        source["secretRef"]["name"]
        for manifest in all_manifests()
        for container in manifest.containers()
        for source in container.get("envFrom", [])
        if "secretRef" in source
    }
    assert f"create secret generic {name}" in page
    assert all(f"--from-literal={variable}=" in page for variable in SECRET)


def test_every_kustomization_is_of_a_known_kind():
    for overlay in OVERLAYS:
        (kustomization,) = documents(overlay / "kustomization.yaml")
        assert kustomization["kind"] == "Kustomization"
