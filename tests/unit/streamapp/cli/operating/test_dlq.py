"""What the command line of `grove dlq` takes, and how it says what a record is."""

import pytest

from streamapp.cli.main import main
from streamapp.cli.operating.dlq import described
from streamapp.tools.dead_letters.skip import Skippable
from streamapp.worker.journal.entry import Skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["here"],
            "'here' must be PARTITION:OFFSET of the topic instances, for example 3:1200",
        ),
        (["3:-1", "--source", "labels"], "'3:-1' must be PARTITION:OFFSET of the topic labels"),
        (["1:2:3"], "'1:2:3' must be"),
        (["3:1", "--source", "predictions"], "'predictions' is not one of 'controls', 'instances', "),
        ([], "Missing argument 'PARTITION:OFFSET'"),
    ],
)
def test_a_place_that_cannot_be_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["dlq", "skip", *arguments]) == 64
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", ["list", "replay"])
def test_a_reason_that_does_not_exist_is_told_with_those_that_do(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert main(["dlq", command, "--reason", "not-json", "--reason", "bad-luck"]) == 64
    assert "--reason bad-luck: there is none of that name; known: missing-key, " in capsys.readouterr().err


def test_a_record_is_described_so_that_it_can_be_known_again() -> None:
    skip, time = Skip(1, "labels", 1234, ""), 1_700_000_000_123
    found = Skippable("grove.labels", 3, skip, b"shop/1", 5_000, time, 1000, already=True)
    facts, lines = described(found)
    assert lines == [
        "record     grove.labels 3:1234, 5,000 bytes, of 2023-11-14 22:13:20.123+00:00",
        "key        'shop/1'",
        "position   1,000: 234 offsets before it",
    ]
    assert facts == {
        "topic": "grove.labels",
        "partition": 3,
        "offset": 1234,
        "key": "shop/1",
        "bytes": 5000,
        "timestamp": time,
        "next": 1000,
        "already": True,
    }


def test_a_record_without_key_value_and_time() -> None:
    found = Skippable("grove.labels", 3, Skip(1, "labels", 1234, ""), None, None, -1, 1234, already=False)
    assert described(found)[1] == [
        "record     grove.labels 3:1234, no value, without a time",
        "key        none",
        "position   1,234: it is the next one",
    ]
