"""Records of the journal: bytes and back, as people read them, and those of earlier formats."""

import json
from dataclasses import replace
from pathlib import Path

import msgpack
import pytest

from streamapp.worker.journal.entry import (
    Entry,
    JournalError,
    Manifest,
    Record,
    Reset,
    Skip,
    Step,
    decode,
    encode,
)
from streamapp.worker.journal.record_lines import as_json, as_text
from streamapp.worker.task.sources import positions_of
from tests.golden import journal
from tests.positions import at
from topics.columns.records import RawRecords

CONTROLS = RawRecords("t.controls", 3, [4], [17], [b"m"], [b"{}"], [(("a", b"1"),)])
COMMIT = Entry(
    2,
    1,
    "here",
    at(controls=4, instances=10),
    at(controls=5, instances=40, labels=2),
    (
        Step("controls", 5, records=CONTROLS),
        Step("instances", 30, ((12, 13),), ((20, 22),)),
        Step("labels", 2),
        Step("instances", 40, count=9),
    ),
    "{}",
)
SNAPSHOT = Manifest(
    2, 7, 1, "here", at(controls=5, instances=30, labels=2), 99, "{}", 1200, 34_567, 1, 12345, 678
)
RESET = Reset(2, at(controls=5, instances=30, labels=2))
SKIP = Skip(2, "instances", 1234, "id of the topic")


@pytest.mark.parametrize(
    "record", [COMMIT, SNAPSHOT, RESET, SKIP], ids=["commit", "snapshot", "reset", "skip"]
)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    read = decode(encode(record), partition=3)
    assert (type(read), encode(read)) == (type(record), encode(record))
    if isinstance(read, Entry):
        assert [step.count for step in read.steps] == [None, None, None, 9]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "is no journal entry"),
        (b"\x01", "is no journal entry"),
        (
            msgpack.packb([6, 0]),
            "version=6 kind=0 must be a version from 1 to 5 .* run the release that wrote",
        ),
        (msgpack.packb([2, 9]), "kind=9 must be"),
        (msgpack.packb([1, 3]), "version=1 kind=3 must be"),
        (msgpack.packb([{}, 0]), "must be a version"),
        (b"\x91" * 2000 + b"\x01", "is no journal entry"),
        (msgpack.packb([2, 2, 1]), "is no journal entry"),
        (msgpack.packb([3, 2, 1, [0, 0, 0]]), "is no journal entry"),
        (msgpack.packb([3, 2, 1, {"instances": 7, "others": 0}]), "source 'others' must be one of controls"),
        (msgpack.packb([3, 3, 1, "others", 7, ""]), "source 'others' .* run the release that wrote it"),
        (msgpack.packb([3, 3, 1, 1, 7, ""]), "source 1 must be one of"),
        (msgpack.packb([2, 0, 1, 5, "", [0, 0, 0], [0, 0, 0], [7], None]), "is no journal entry"),
    ],
)
def test_what_is_not_of_this_release_is_refused_with_its_place(value: bytes, reason: str) -> None:
    with pytest.raises(JournalError, match=f"topic=t partition=3: .*{reason}"):
        decode(value, "t", 3)


def test_a_source_that_a_record_does_not_name_stands_at_its_beginning() -> None:
    read = decode(msgpack.packb([3, 2, 1, {"instances": 7}]))
    assert read == Reset(1, {"controls": 0, "instances": 7, "feature_values": 0, "labels": 0})


def test_a_source_that_an_installation_may_do_without_is_named_once_it_has_records() -> None:
    """Until then the journal is what releases without that source have written, and read."""
    positions = positions_of({"instances": 7})
    assert b"feature_values" not in encode(Reset(1, positions))
    moved = Reset(1, positions_of({"instances": 7, "feature_values": 2}))
    assert decode(encode(moved)) == moved
    assert "feature_values=2" in as_text(as_json(3, 0, moved))


def test_only_what_passed_over_batches_is_in_the_format_that_can_say_so() -> None:
    """An earlier release reads the journal of a partition that never met one."""
    passed = replace(COMMIT, steps=(Step("instances", 40, count=9, unread=((12, 20), (30, 40))),))
    assert (msgpack.unpackb(encode(COMMIT))[0], msgpack.unpackb(encode(passed))[0]) == (3, 4)
    assert decode(encode(passed), partition=3) == passed
    assert as_json(3, 0, passed)["steps"] == [
        {"source": "instances", "to": 40, "unread": ((12, 20), (30, 40))}
    ]


def test_a_step_lists_the_controls_that_were_refused() -> None:
    refused = replace(COMMIT, steps=(Step("controls", 5, records=CONTROLS, dead=((4, 5),)),))
    assert as_json(3, 0, refused)["steps"] == [
        {"source": "controls", "to": 5, "dead": ((4, 5),), "controls": ["m"]}
    ]


def test_a_line_says_what_was_processed() -> None:
    records: list[Record] = [COMMIT, SNAPSHOT, RESET, SKIP]
    lines = [as_text(as_json(3, offset, record)).split() for offset, record in enumerate(records)]
    assert lines[0][:4] == ["3", "0", "commit", "2"]
    assert lines[0][4:] == ["controls", "4…5", "instances", "10…40", "labels", "0…2", "(4", "steps)"]
    assert " ".join(lines[1][2:]) == (
        "snapshot 2.7 1,200 units, 34,567 bytes, of controls=5 instances=30 labels=2"
    )
    assert " ".join(lines[3][2:]) == "skip 2 instances 1234 is to become a dead letter"
    assert " ".join(lines[2][2:]) == "reset 2 new models at controls=5 instances=30 labels=2"


def test_json_names_the_steps() -> None:
    steps = as_json(3, 0, COMMIT)["steps"]
    assert steps[0] == {"source": "controls", "to": 5, "controls": ["m"]}
    assert steps[1] == {"source": "instances", "to": 30, "skipped": ((12, 13),), "refused": ((20, 22),)}


@pytest.mark.parametrize("path", journal.files(), ids=lambda path: path.stem)
def test_what_a_release_has_written_is_read_for_ever(path: Path) -> None:
    body = json.loads(path.read_text())
    records = [decode(bytes.fromhex(each["value"]), partition=3) for each in body]
    says = json.loads(json.dumps([as_json(3, 0, record) for record in records]))
    assert says == [each["says"] for each in body]
    assert [encode(record) for record in records] == [encode(each) for each in journal.RECORDS[: len(body)]]


def test_the_format_of_now_has_a_file_too() -> None:
    assert journal.file_of_now() in journal.files()
    found = [bytes.fromhex(each["value"]) for each in json.loads(journal.file_of_now().read_text())]
    assert found == [encode(record) for record in journal.RECORDS], "another format needs another version"
