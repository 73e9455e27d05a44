"""Every Kubernetes object against the API's strict schema and against what we promise of it."""

from __future__ import annotations

import re
from typing import Any

import kubernetes_validate
import pytest

from tests.unit.deployment.manifests import KUBERNETES, Manifest, all_manifests, configuration, few_rights

VERSIONS = ("1.31", "1.37")  # oldest and newest that we look at
MANIFESTS = all_manifests()
WORKLOADS = [manifest for manifest in MANIFESTS if manifest.pod() is not None]


def one(kind: str) -> dict[str, Any]:
    (document,) = [m.document for m in MANIFESTS if m.document["kind"] == kind and "base" in m.path.parts]
    return document


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", MANIFESTS, ids=str)
def test_an_object_is_what_the_api_accepts(manifest, version):
    kubernetes_validate.validate(manifest.document, version, strict=True)


def test_the_schema_refuses_a_misspelt_field():
    broken = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"clusterIp": "None"}}
    with pytest.raises(kubernetes_validate.ValidationError, match="clusterIp"):
        kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


def test_every_file_of_the_folder_is_used():
    """A manifest that no overlay reaches is never applied and never checked."""
    reached = {manifest.path for manifest in MANIFESTS}
    patches = set(KUBERNETES.glob("overlays/*/*.yaml")) - reached
    chart = set(KUBERNETES.glob("chart/**/*.yaml"))
    lost = set(KUBERNETES.rglob("*.yaml")) - reached - patches - chart
    assert {path.name for path in lost} == {"kustomization.yaml"}


@pytest.mark.parametrize("manifest", WORKLOADS, ids=str)
def test_a_pod_runs_with_few_rights(manifest):
    few_rights(manifest)


@pytest.mark.parametrize("manifest", WORKLOADS, ids=str)
def test_a_container_is_pinned(manifest):
    for container in manifest.containers():
        assert re.fullmatch(r"[a-z0-9./-]+:\d+(\.\d+)+(\.dev\d+)?", container["image"])


@pytest.mark.parametrize("manifest", WORKLOADS, ids=str)
def test_mounts_have_volumes_and_selectors_match(manifest):
    pod, spec = manifest.pod(), manifest.document["spec"]
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    volumes |= {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])}
    mounted = {mount["name"] for c in manifest.containers() for mount in c.get("volumeMounts", [])}
    assert mounted == volumes
    labels = spec["template"]["metadata"]["labels"]
    if "selector" in spec:
        assert spec["selector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("manifest", WORKLOADS, ids=str)
def test_settings_come_from_the_generated_config_map(manifest):
    for container in manifest.containers():
        if "args" in container:
            assert {"configMapRef": {"name": "streamgrove"}} in container["envFrom"]
    assert manifest.pod()["serviceAccountName"] == one("ServiceAccount")["metadata"]["name"]


def test_a_worker_is_known_by_its_pod_name():
    (worker,) = one("StatefulSet")["spec"]["template"]["spec"]["containers"]
    assert worker["env"] == [
        {
            "name": "GROVE_KAFKA_GROUP_INSTANCE_ID",
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
        }
    ]


def test_workers_start_and_stop_together_and_are_disturbed_one_by_one():
    spec = one("StatefulSet")["spec"]
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] >= 30
    budget = one("PodDisruptionBudget")["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"] == spec["selector"]


def test_the_service_gives_every_worker_a_name():
    service, workers = one("Service"), one("StatefulSet")["spec"]
    assert service["spec"]["clusterIP"] == "None"
    assert workers["serviceName"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == workers["selector"]["matchLabels"]


def test_workers_spread_over_nodes():
    pod = one("StatefulSet")["spec"]["template"]["spec"]
    (spread,) = pod["topologySpreadConstraints"]
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    assert spread["labelSelector"] == one("StatefulSet")["spec"]["selector"]


def test_ports_agree_with_the_setting():
    port = int(configuration(KUBERNETES / "base")["GROVE_WEB_PORT"])
    (worker,) = one("StatefulSet")["spec"]["template"]["spec"]["containers"]
    assert worker["ports"] == [{"name": "http", "containerPort": port}]
    assert one("Service")["spec"]["ports"] == [{"name": "http", "port": port, "targetPort": "http"}]
    scrape = one("StatefulSet")["spec"]["template"]["metadata"]["annotations"]
    assert scrape["prometheus.io/port"] == str(port)


def test_an_image_is_the_same_everywhere():
    assert len({c["image"] for m in WORKLOADS for c in m.containers()}) == 1


def test_a_manifest_tells_its_kind():
    assert Manifest(KUBERNETES / "base" / "service.yaml", one("Service")).identity == (
        "Service",
        "streamgrove",
    )
