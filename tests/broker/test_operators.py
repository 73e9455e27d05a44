"""What operators get wrong, on a real broker: one line that says what to do, and an exit code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation as May
from confluent_kafka.admin import ResourceType

from tests.broker.secured import SecuredBroker, secured_broker
from tests.broker.workers import PATIENCE, Installation
from tests.conftest import Broker

pytestmark = pytest.mark.broker

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
DATA = ("--data", "gen:sea?n=10")


def test_of_two_workers_of_one_name_on_two_machines_the_first_ends(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "fenced.", 2, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with place.worker("w") as first:
        first.wait_until_ready()
        place.directory = elsewhere
        with place.worker("w") as second:
            assert first.wait() != 0, first.log
            second.wait_until_ready()
            assert second.terminate() == 0
    assert "NameTakenError: group.instance.id=w must be one worker's own: another worker at" in first.log
    assert second.log.count("assigned partitions") == 1, "it was not thrown out again"


def run(settings: dict[str, str], *command: str) -> tuple[int, str]:
    """Run a command; return its exit code and the lines on standard error."""
    ended = subprocess.run(
        [sys.executable, "-m", "streamapp", *command],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return ended.returncode, ended.stderr.strip()


@pytest.mark.nightly
def test_what_is_denied_is_named_with_the_right_to_grant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with secured_broker(monkeypatch, tmp_path) as broker:
        place = Installation(broker.bootstrap_servers, "denied.", 2, tmp_path)
        names, group = place.names, place.group
        settings = broker.settings | {"GROVE_TOPICS_PREFIX": place.prefix, "GROVE_APPLICATION_ID": group}
        grant = "grant it with kafka-acls --add --allow-principal User:grove --operation"

        wrong = settings | {"GROVE_KAFKA_SASL_PASSWORD": "wrong"}
        code, output = run(wrong, "topics", "check")
        assert code == 1
        assert "does not let this client in" in output
        assert output.endswith("correct sasl.mechanism, sasl.username and sasl.password")

        hidden = f"topic '{names.instances}' must allow Describe to user 'grove'; {grant} Describe --topic"
        for command in (["topics", "check"], ["replay", *DATA], ["worker"]):
            code, output = run(settings, *command)
            assert code == (78 if command == ["worker"] else 1)
            assert f"{hidden} {names.instances}" in output, command
        code, output = run(settings, "topics", "create")
        assert (code, f"{grant} Create --topic" in output) == (1, True), output

        broker.allow(TOPIC, place.prefix + "*", May.DESCRIBE)
        code, output = run(settings, "topics", "check")
        assert (code, f"{grant} DescribeConfigs --topic {names.labels}" in output) == (1, True), output
        code, output = run(settings, "replay", *DATA)
        assert (code, len(output.splitlines())) == (1, 1), output
        assert f"{grant} IdempotentWrite --cluster, or grant Write on its topics" in output
        broker.allow(TOPIC, names.labels, May.WRITE)
        code, output = run(settings, "oracle", *DATA)
        assert (code, f"group '{group}-oracle' must allow Read" in output) == (1, True), output
        refused_by_worker(place, broker, f"group '{group}' must allow Read to user 'grove'")
        broker.allow(GROUP, group + "*", May.READ)
        code, output = run(settings, "oracle", *DATA)
        assert (code, f"{grant} Read --topic {names.label_requests}" in output) == (1, True), output
        ours = f"{grant} Write --operation Describe --transactional-id {group}-w"
        refused_by_worker(place, broker, ours)
        broker.allow(ResourceType.TRANSACTIONAL_ID, group + "*", May.WRITE, May.DESCRIBE)
        refused_by_worker(place, broker, f"{grant} Read --topic {place.prefix}")

        place.module = "tests.broker.refused_worker"
        with place.worker("w", fresh=False, **broker.settings) as worker:
            assert worker.wait() == 78, worker.log
        assert "librdkafka was let in, aiokafka is not: SaslAuthenticationFailed" in worker.log


def refused_by_worker(place: Installation, broker: SecuredBroker, expected: str) -> None:
    """Start a worker and see it end with these words."""
    with place.worker("w", fresh=False, **broker.settings) as worker:
        assert worker.wait() == 1, worker.log
        assert expected in worker.log, worker.log
