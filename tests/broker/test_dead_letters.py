"""Dead letters on a real broker: listed, shown, sent back to where they came from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamapp.cli.main import main
from streamapp.worker.outputs.dead_letters import dead_letters
from streamapp.worker.task.effects.effects import DeadLetter, Origin
from tests.broker.workers import Installation
from tests.conftest import Broker
from topics.clients.sender import Sender
from topics.errors import Reason

pytestmark = pytest.mark.broker


def test_what_is_mended_is_sent_back_and_counts_on(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Installation(broker.bootstrap_servers, "letters.", 2, tmp_path)
    names, options = place.names, ["-b", place.servers, "--topics-prefix", place.prefix]

    def grove(*command: str, code: int = 0) -> str:
        assert main(["dlq", *command, *options]) == code
        output = capsys.readouterr()
        return output.err if code else output.out

    assert "no dead letter matches" in grove("replay")
    origins = [
        Origin(names.labels, 1, 7, 1_700_000_000_000, b"m", b'{"id": 1}', [("mine", b"\xff")]),
        Origin(names.instances, 1, 8, 1_700_000_000_001, b"other", b"any\xff", ()),
        Origin(names.instances, 1, 9, 1_700_000_000_002, None, None, ()),
    ]
    reasons = (Reason.WRONG_TYPE, Reason.NOT_JSON, Reason.OUTPUT_TOO_LARGE)
    letters = [DeadLetter(origin, why, f"is {why}") for origin, why in zip(origins, reasons, strict=True)]
    given = dead_letters(names.dead_letters, letters, 1 << 20)
    sender = Sender({"bootstrap.servers": place.servers})
    sender.send_run(given.topic, 1, given.values, given.keys, given.timestamps, given.headers)
    sender.flush()
    sender.close()

    rows = json.loads(grove("list", "--json"))
    assert [(row["at"], row["reason"], row["record"]) for row in rows] == [
        ("1:0", "wrong-type", "1:7"),
        ("1:1", "not-json", "1:8"),
        ("1:2", "output-too-large", "1:9"),
    ]
    assert [row["at"] for row in json.loads(grove("list", "--limit", "2", "--json"))] == ["1:1", "1:2"]
    assert [row["at"] for row in json.loads(grove("list", "--key", "other", "--json"))] == ["1:1"]
    assert json.loads(grove("show", "1:1", "--json"))["value"] == "0x616e79ff"
    assert "has no record at 1:3" in grove("show", "1:3", code=1)
    assert "has no record at 9:0" in grove("show", "9:0", code=1)

    assert f"would go to {names.labels}: 1" in grove("replay", "--key", "m", "--dry-run")
    assert list(place.raw(names.labels)) == []
    result = json.loads(grove("replay", "--yes", "--json"))
    assert result["sent"] == {names.labels: 1, names.instances: 1}
    assert list(result["left"].values()) == [1]
    assert f"sent to {names.labels}: 1" in grove("replay", "1:0", "--yes")
    first, second = place.raw(names.labels)
    for back in (first, second):
        assert (back.partition(), back.key(), back.value()) == (1, b"m", b'{"id": 1}')
        assert back.headers() == [
            ("mine", b"\xff"),
            ("grove-dlq-first-seen", b"1700000000000"),
            ("grove-dlq-attempts", b"1"),
        ]
    assert len(list(place.raw(names.dead_letters))) == 3
