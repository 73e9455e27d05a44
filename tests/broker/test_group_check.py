"""A worker looks before it joins: others in its group, topics that have more partitions than before."""

import signal
from pathlib import Path

import orjson
import pytest
from confluent_kafka.admin import AdminClient

from streamapp.cli.main import main
from tests.broker.workers import PATIENCE, Installation
from tests.conftest import Broker

pytestmark = pytest.mark.broker


def test_groups_of_other_topics_and_topics_that_have_grown(broker: Broker, tmp_path: Path) -> None:
    servers = broker.bootstrap_servers
    old = Installation(servers, "old.", 2, tmp_path / "old", module="streamapp worker")
    new = Installation(servers, "new.", 2, tmp_path / "new", module="streamapp worker")
    shared = {"GROVE_APPLICATION_ID": old.group, "GROVE_KAFKA_SESSION_TIMEOUT_MS": "150000"}
    for place in (old, new):
        place.directory.mkdir()
        place.settings |= shared
    producer = old.producer()
    for number in range(20):
        document = {"id": str(number), "features": {"a": number % 7}, "label": "xy"[number % 2]}
        producer.produce(old.names.instances, orjson.dumps(document), b"model", 0)
    assert producer.flush(PATIENCE) == 0

    with old.worker("w") as before:
        before.wait_until_ready()
        old.wait_for_lag_0(alive=[before])
        before.signal(signal.SIGTERM)  # it stays a member for as long as a session is
        assert before.wait() == 0, before.log
    with new.worker("w") as after:
        after.wait_until_ready()
        assert "a worker of other topics had its name; joining the group once more" in after.log
        with old.worker("v") as beside:
            assert beside.wait() == 1, beside.log
            message = (
                f"application.id={old.group} must be one installation's own: its group has the member w at "
            )
            assert message in beside.log
        after.signal(signal.SIGUSR2)
        assert after.wait() == 0, after.log

    for topic in old.names.all():
        old.grow(topic, 4)
    with old.worker("v") as grown:
        assert grown.wait() == 78, grown.log
        refusal = f"topics {old.prefix}* have 4 partitions, but group {old.group} has processed "
        assert refusal in grown.log
        client = AdminClient({"bootstrap.servers": servers})
        (deleted,) = client.delete_consumer_groups([old.group]).values()
        deleted.result(PATIENCE)  # as if the offsets had expired
        grown.start()
        assert grown.wait() == 78, grown.log
        assert f"{refusal}{old.names.journal} with 2 partitions" in grown.log
        options = ["-b", servers, "--topics-prefix", old.prefix, "--set", f"application.id={old.group}"]
        for partition in ("0", "1"):
            assert main(["models", "reset", "-p", partition, "--yes", *options]) == 0
        grown.start()
        grown.wait_until_ready()
