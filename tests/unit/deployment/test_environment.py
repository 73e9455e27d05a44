"""Every variable and every command in the deployment files is one that the program knows."""

from __future__ import annotations

import os
import re
import tomllib
from typing import Any

import pytest
import typer
from prometheus_client import CollectorRegistry

from streamapp.cli.main import app
from streamapp.settings import Settings, env_name, load_settings
from streamapp.settings.check import check_clients, check_spec
from streamapp.settings.loading import unknown_variables
from streamapp.worker.observability.health import Health
from streamapp.worker.observability.pages import add_pages
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
    variables_of = {
        f"compose: {name}": of_the_image() | service["environment"]
        for name, service in our_services().items()
    }
    for overlay in OVERLAYS:
        variables_of[f"k8s: {overlay.name}"] = of_the_image() | configuration(overlay) | SECRET
    return variables_of


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
    assert unknown_variables() == []
    for attribute in Settings.model_fields:
        name = env_name(attribute)
        if name in variables:
            assert str(getattr(settings, attribute)) == variables[name]
    check_spec(settings)
    check_clients(settings)


def commands() -> dict[str, list[str]]:
    """The command lines of all containers that run our image's entry point."""
    command_of = {f"compose: {name}": service["command"] for name, service in our_services().items()}
    for manifest in all_manifests():
        for container in manifest.containers():
            if "args" in container:
                command_of[f"k8s: {container['name']}"] = container["args"]
    return command_of


def parse(words: list[str]) -> list[str]:
    """Parse a command line down to its last command, without running it; return the names on the way."""
    command: Any = typer.main.get_command(app)
    names: list[str] = []
    while True:
        context = command.make_context(command.name, list(words))
        if not hasattr(command, "resolve_command"):
            return names
        words = [*context._protected_args, *context.args]
        if not words and command.invoke_without_command:
            return names
        name, command, words = command.resolve_command(context, words)
        names.append(name)


@pytest.mark.parametrize("where", commands())
def test_a_container_runs_a_command_line_that_grove_understands(where):
    words = commands()[where]
    names = parse(words)
    assert names == [word for word in words if not word.startswith("-")]


def test_a_misspelt_option_would_be_found():
    with pytest.raises(Exception, match="--lables"):
        parse(["replay", "--data=x", "--lables=none"])


@pytest.mark.parametrize("where", commands())
def test_data_sets_of_a_container_are_in_the_image(where):
    for word in commands()[where]:
        for path in word.removeprefix("--data=").split(",") if word.startswith("--data=") else ():
            assert path.startswith("/usr/share/streamgrove/data/")
            assert (ROOT / "examples" / "data" / path.rpartition("/")[2]).is_file()


class Pages(dict[str, Any]):
    """Stands where Faust's app does when pages are added, and remembers their paths."""

    def page(self, path: str, **options: object):
        return lambda view: self.setdefault(path, view)


def test_probes_and_health_checks_ask_for_pages_that_exist():
    pages = Pages()
    add_pages(pages, Health(), CollectorRegistry())
    asked = set(re.findall(r"/(?:livez|readyz|healthz|startupz)\b", (ROOT / "Dockerfile").read_text()))
    for manifest in all_manifests():
        for container in manifest.containers():
            probes = [container[name] for name in container if name.endswith("Probe")]
            asked |= {probe["httpGet"]["path"] for probe in probes}
            annotations = manifest.document["spec"]["template"]["metadata"].get("annotations", {})
            asked |= {value for name, value in annotations.items() if name.endswith("/path")}
    assert asked == {"/livez", "/readyz", "/metrics"}
    assert asked <= set(pages)


def test_an_unknown_variable_would_be_found(set_environment):
    set_environment({"GROVE_TOPIC_PARTITIONS": "8"})
    (sentence,) = unknown_variables()
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
