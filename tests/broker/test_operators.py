"""What operators get wrong, on a real broker: one line that says what to do, an exit code, no traceback."""

from pathlib import Path

import pytest

from tests.broker.workers import Installation
from tests.conftest import Broker

pytestmark = pytest.mark.broker

GROVE = "streamapp worker"  # the real one


def test_of_two_workers_of_one_name_on_two_machines_the_first_ends_with_78(
    broker: Broker, tmp_path: Path
) -> None:
    place = Installation(broker.bootstrap_servers, "fenced.", 2, tmp_path, module=GROVE)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with place.worker("w") as first:
        first.wait_until_ready()
        place.directory = elsewhere
        with place.worker("w") as second:
            assert first.wait(60) == 78, first.log
            second.wait_until_ready()
            assert second.terminate() == 0
    assert (
        "grove: group.instance.id=w must be one worker's own: another one at 127.0.0.1 has joined"
        in first.log
    )
    assert "Traceback" not in first.log + second.log
    assert second.log.count("assigned partitions") == 1, "it was not thrown out again"
