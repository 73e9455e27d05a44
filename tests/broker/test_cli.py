"""The command line against a real broker: topics, replay, oracle."""

import json
import re
import uuid

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from streamapp.cli.main import main
from tests.broker.workers import PATIENCE
from topics.definitions import CATALOGUE, TopicNames, retention

pytestmark = pytest.mark.broker


@pytest.fixture
def options(broker) -> list[str]:
    return ["-b", broker.bootstrap_servers, "--topics-prefix", f"cli-{uuid.uuid4().hex[:8]}."]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(list(arguments))
    out, err = capsys.readouterr()
    return status, out, err


def test_create_is_idempotent_and_check_is_satisfied(
    capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    status, out, err = run(capsys, "topics", "create", "--partitions", "3", *options)
    assert status == 0, err
    assert out.count("created") == len(CATALOGUE)
    status, out, err = run(capsys, "topics", "create", "--partitions", "3", *options)
    assert status == 0, err
    assert out.count("existed") == len(CATALOGUE)
    assert run(capsys, "topics", "check", "--partitions", "3", *options)[0] == 0
    status, out, err = run(capsys, "topics", "describe", "--json", *options)
    assert status == 0, err
    assert {len(topic["partitions"]) for topic in json.loads(out)} == {3}
    catalogue = TopicNames(options[-1]).all()
    assert {topic["name"]: (topic["key"], topic["group"]) for topic in json.loads(out)} == {
        name: (topic.key, topic.group) for name, topic in catalogue.items()
    }
    status, out, err = run(capsys, "topics", "describe", *options)
    assert status == 0, err
    shown = {line.split()[0]: line for line in out.splitlines()}
    for name, topic in catalogue.items():
        assert re.search(
            rf" {topic.direction} +{topic.cleanup} +{retention(topic.retention_ms)} +3 ", shown[name]
        )
    assert "co-partition group learning: equal partitions, key: model key\n" in out


def test_check_names_a_missing_topic_and_a_differing_count(
    capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    status, _, err = run(capsys, "topics", "check", *options)
    assert status == 1
    assert err.count("is missing") == len(CATALOGUE)
    run(capsys, "topics", "create", "--partitions", "2", *options)
    labels = f"{options[3]}labels"
    client = AdminClient({"bootstrap.servers": options[1]})
    client.create_partitions([NewPartitions(labels, 4)])[labels].result(PATIENCE)
    while len(client.list_topics(labels, timeout=PATIENCE).topics[labels].partitions) < 4:
        pass  # the controller has said yes; the broker's own picture follows
    status, _, err = run(capsys, "topics", "check", *options)
    assert status == 1
    assert f"topic '{labels}' has 4 partitions" in err
    assert "Traceback" not in err


def test_worker_refuses_topics_that_differ(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    status, _, err = run(capsys, "worker", *options)
    assert status == 78
    assert "is missing" in err.splitlines()[-1]
    assert "Traceback" not in err


def test_replay_says_what_it_sent_and_where_to_go_on(
    capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    run(capsys, "topics", "create", "--partitions", "2", *options)
    data = ["--data", "gen:sea?n=500", "--key", "a", "--key", "b"]
    status, out, _ = run(capsys, "replay", *data, "--labels", "apart", "--records", "300", "--json", *options)
    assert status == 0
    report = json.loads(out)
    assert (report["rows"], report["instances"], report["labels"], report["next_row"]) == (300, 600, 600, 300)
    status, out, _ = run(capsys, "replay", *data, "--from-row", "300", *options)
    assert status == 0
    assert "200 rows: 400 instances" in out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--label-delay", "3x", "--labels", "apart"], "must be a number of records (200) or a time"),
        (["--labels", "apart", "--no-ids"], "ids=False must be True with labels=apart"),
        (["--key", "a", "--keys", "3"], "--keys and --key exclude each other"),
        (["--spread", "zip"], "'each', 'round-robin', 'zipf'"),
    ],
)
def test_replay_refuses_what_makes_no_stream(
    capsys: pytest.CaptureFixture[str], options: list[str], arguments: list[str], expected: str
) -> None:
    status, _, err = run(capsys, "replay", "--data", "gen:sea?n=5", *arguments, *options)
    assert status == 64
    assert expected in err
    assert err.count("\n") == 1


def test_oracle_ends_when_idle(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    run(capsys, "topics", "create", "--partitions", "2", *options)
    status, out, _ = run(
        capsys, "oracle", "--data", "gen:sea?n=50", "--idle-seconds", "1", "--json", *options
    )
    assert status == 0
    assert json.loads(out)["requests"] == 0


def test_missing_topics_are_one_line(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    for command in (["replay"], ["oracle"]):
        status, _, err = run(capsys, *command, "--data", "gen:sea?n=5", *options)
        assert status == 1
        assert "grove topics create" in err
        assert err.count("\n") == 1
