"""Overlays: what they refer to exists, what they patch exists, and where kubectl is at hand they render."""

from __future__ import annotations

import shutil
import subprocess

import kubernetes_validate
import pytest
import yaml

from tests.unit.deployment.manifests import (
    KUBERNETES,
    OVERLAYS,
    configuration,
    documents,
    env_file,
    kustomizations,
    resources,
)


def test_there_are_two_overlays():
    assert [overlay.name for overlay in OVERLAYS] == ["dev", "production"]


@pytest.mark.parametrize("path", kustomizations(), ids=lambda p: p.parent.relative_to(KUBERNETES).as_posix())
def test_a_kustomization_refers_to_what_exists(path):
    (kustomization,) = documents(path)
    known = {
        "apiVersion",
        "kind",
        "namespace",
        "labels",
        "resources",
        "components",
        "configMapGenerator",
        "patches",
    }
    assert set(kustomization) <= known
    for name in [*kustomization.get("resources", []), *kustomization.get("components", [])]:
        target = path.parent / name
        assert (target / "kustomization.yaml").is_file() if target.is_dir() else target.is_file(), name
    for generator in kustomization.get("configMapGenerator", []):
        for name in generator["envs"]:
            assert env_file(path.parent / name)
    for patch in kustomization.get("patches", []):
        assert (path.parent / patch["path"]).is_file()


def shape(patch, original, where):
    """Fields of the patch meet the same kind of field; lists of named things name a known one."""
    if isinstance(patch, dict):
        for key, value in patch.items():
            if key in original:
                shape(value, original[key], f"{where}.{key}")
    elif isinstance(patch, list) and patch and isinstance(patch[0], dict) and "name" in patch[0]:
        known = {entry["name"]: entry for entry in original}
        for entry in patch:
            assert entry["name"] in known, f"{where}: {entry['name']} would be added, not changed"
            shape(entry, known[entry["name"]], f"{where}.{entry['name']}")
    else:
        assert type(patch) is type(original), where


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda p: p.name)
def test_a_patch_changes_an_object_that_exists(overlay):
    objects = {manifest.identity: manifest.document for manifest in resources(overlay)}
    (kustomization,) = documents(overlay / "kustomization.yaml")
    assert kustomization["patches"]
    for entry in kustomization["patches"]:
        for patch in documents(overlay / entry["path"]):
            identity = patch["kind"], patch["metadata"]["name"]
            assert identity in objects
            shape(patch, objects[identity], entry["path"])


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda p: p.name)
def test_an_overlay_changes_settings_of_the_base_or_adds_to_them(overlay):
    base = env_file(KUBERNETES / "base" / "streamgrove.env")
    own = env_file(overlay / "streamgrove.env")
    assert all(base.get(name) != value for name, value in own.items()), "says again what the base says"
    assert configuration(overlay).items() >= (base | own).items()


def test_only_development_replays_a_data_set():
    kinds = {overlay.name: {m.identity for m in resources(overlay)} for overlay in OVERLAYS}
    assert ("Job", "streamgrove-replay") in kinds["dev"]
    assert ("Job", "streamgrove-replay") not in kinds["production"]
    assert ("Job", "streamgrove-topics") in kinds["dev"] & kinds["production"]


def test_production_keeps_more_than_one_copy_and_encrypts():
    settings = configuration(KUBERNETES / "overlays" / "production")
    assert int(settings["GROVE_TOPICS_REPLICATION_FACTOR"]) >= 3
    assert settings["GROVE_KAFKA_SECURITY_PROTOCOL"] == "SASL_SSL"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="rendering needs kubectl")
@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda p: p.name)
def test_what_kubectl_renders_is_what_the_api_accepts(overlay):
    rendered = subprocess.run(
        ["kubectl", "kustomize", str(overlay)], check=True, capture_output=True, text=True, timeout=60
    )
    objects = list(yaml.safe_load_all(rendered.stdout))
    (settings,) = [o for o in objects if o["kind"] == "ConfigMap"]
    assert settings["data"] == configuration(overlay)
    for rendered_object in objects:
        kubernetes_validate.validate(rendered_object, "1.37", strict=True)
        if "template" in rendered_object.get("spec", {}):
            pod = rendered_object["spec"]["template"]["spec"]
            names = {
                s["configMapRef"]["name"]
                for c in pod["containers"]
                for s in c["envFrom"]
                if "configMapRef" in s
            }
            assert names == {settings["metadata"]["name"]}
