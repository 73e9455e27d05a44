"""docker-compose.yml against the compose specification and against what we promise of it."""

from __future__ import annotations

import ipaddress
import re
import shutil
import subprocess

import jsonschema
import pytest

from tests.unit.deployment.manifests import COMPOSE, ROOT, compose, compose_schema, our_services

SERVICES = compose()["services"]


def test_it_is_a_compose_file():
    jsonschema.validate(compose(), compose_schema(), cls=jsonschema.Draft7Validator)


def test_the_schema_refuses_a_misspelt_key():
    broken = {"services": {"kafka": {"image": "apache/kafka:4.4.0", "depend_on": []}}}
    with pytest.raises(jsonschema.ValidationError, match="depend_on"):
        jsonschema.validate(broken, compose_schema(), cls=jsonschema.Draft7Validator)


def has_compose():
    """Tell whether docker knows its plug-in: it reads a file without an engine."""
    docker = shutil.which("docker")
    return (
        docker is not None
        and subprocess.run([docker, "compose", "version"], capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not has_compose(), reason="docker compose is not installed")
def test_docker_compose_reads_it():
    subprocess.run(["docker", "compose", "--file", COMPOSE, "config", "--quiet"], check=True, timeout=60)


def test_the_services_that_make_a_pipeline_are_there():
    assert set(SERVICES) == {
        "kafka",
        "topics",
        "worker",
        "oracle",
        "replay",
        "prometheus",
        "grafana",
    }


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned_to_a_version(name):
    assert re.fullmatch(r"[a-z0-9./-]+:v?\d+(\.\d+)+[\w.-]*", SERVICES[name]["image"])


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_published_on_loopback_only(name):
    for port in SERVICES[name].get("ports", []):
        address, _, _ = port.rpartition(":")[0].rpartition(":")
        assert ipaddress.ip_address(address).is_loopback, port


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_waits_for_can_come_true(name):
    for other, wait in SERVICES[name].get("depends_on", {}).items():
        needed = SERVICES[other]
        if wait["condition"] == "service_healthy":
            # Ours has its health check in the image; a job has it switched off.
            assert not needed.get("healthcheck", {}).get("disable")
            assert "healthcheck" in needed or other in our_services()
        elif wait["condition"] == "service_started":
            assert needed["restart"] == "unless-stopped"
        else:
            assert wait["condition"] == "service_completed_successfully"
            assert needed["restart"] == "on-failure", f"{other} must end"


def test_the_broker_is_kraft_and_its_health_check_asks_it():
    kafka = SERVICES["kafka"]
    environment = kafka["environment"]
    assert environment["KAFKA_PROCESS_ROLES"] == "broker,controller"
    assert not any("ZOOKEEPER" in variable for variable in environment)
    assert kafka["healthcheck"]["test"][-1] in environment["KAFKA_ADVERTISED_LISTENERS"]


def test_what_is_advertised_outside_is_what_is_published():
    advertised = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    (outside,) = re.findall(r"OUTSIDE://([\d.]+:\d+)", advertised)
    assert SERVICES["kafka"]["ports"] == [f"{outside}:{outside.split(':')[1]}"]


def test_workers_find_the_broker_where_it_advertises_itself():
    advertised = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    for service in our_services().values():
        assert f"INSIDE://{service['environment']['GROVE_KAFKA_BOOTSTRAP_SERVERS']}," in advertised


def test_every_replica_of_the_worker_has_a_port():
    worker = SERVICES["worker"]
    published = re.fullmatch(r"127\.0\.0\.1:(\d+)-(\d+):6066", worker["ports"][0])
    assert published, worker["ports"]
    first, last = published.groups()
    assert int(last) - int(first) + 1 == worker["deploy"]["replicas"] > 1


@pytest.mark.parametrize("name", our_services())
def test_our_services_run_with_few_rights(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["init"] is True
    assert "user" not in service, "the image's own user is not root"


@pytest.mark.parametrize("name", our_services())
def test_our_image_is_built_here(name):
    assert (ROOT / SERVICES[name]["build"] / "Dockerfile").is_file()


@pytest.mark.parametrize("name", SERVICES)
def test_named_volumes_are_declared(name):
    for volume in SERVICES[name].get("volumes", []):
        source = volume.split(":")[0]
        assert source in compose()["volumes"] or (ROOT / source).exists()


def test_the_worker_has_a_writable_directory_for_all_it_writes():
    mounts = {volume.split(":")[1] for volume in SERVICES["worker"]["volumes"]} | set(
        SERVICES["worker"]["tmpfs"]
    )
    assert mounts >= {"/var/lib/streamgrove", "/var/cache/streamgrove", "/tmp"}
