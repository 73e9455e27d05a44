"""A control that was refused is refused by a replay, whatever rules the release of the replay has."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgpack
import orjson
import pytest

from core.state_version import ALIKE_SINCE
from streamapp.worker.journal.entry import Entry, decode, encode
from streamapp.worker.journal.ledger import step_of
from streamapp.worker.restore.journal_replay import Replay
from streamapp.worker.task.effects.effects import DeadLetter, Origin
from streamapp.worker.task.models.files.exported import write_exported
from streamapp.worker.task.models.files.importing import control_values
from streamapp.worker.task.task import Task
from tests.topology.logged import Logged
from tests.topology.partition import ALWAYS, PARTITION, Partition, Record, config
from topics.errors import Reason

SCHEMA = {"attributes": [{"name": "x"}], "classes": ["low", "high"]}
OLDER = replace(config(ALWAYS), state_version=ALIKE_SINCE - 1)
NEW_WORD = {"query": {"name": "rate", "anneal": 100}}


def without_outcomes(entry: Entry) -> Entry:
    """Return an entry as releases wrote it whose journal did not hold which controls were refused."""
    return replace(entry, steps=tuple(replace(step, dead=()) for step in entry.steps))


def replayed(live: Logged, change: Callable[[Entry], Entry]) -> Task:
    """Return the task that the journal of a partition leads to, with changed entries."""
    replay = Replay(PARTITION, live.reader(7))
    for entry in live.ledger.cut():
        written = decode(encode(change(entry)), partition=PARTITION)
        assert isinstance(written, Entry)
        replay.apply(written)
    assert replay.task is not None
    return replay.task


def older(entry: Entry) -> Entry:
    return without_outcomes(replace(entry, state_version=ALIKE_SINCE - 1))


def newer(entry: Entry) -> Entry:
    """Return an entry whose controls this release reads by its rules of now."""
    return replace(entry, state_version=ALIKE_SINCE)


def feed_words(live: Logged) -> None:
    """Have a partition refuse what came with this version, before and after commands that it carries out."""
    live.control("create", key="good", spec={"learner": "h-tree"}, schema=SCHEMA)
    live.control("create", key="bad", spec={"query": "ask"}, schema=SCHEMA)
    live.control("configure", key="good", spec=NEW_WORD)
    live.control("configure", key="good", spec={"evaluation": {"per_class": False}})
    live.control("create", key="awaits", spec={"class_weights": {"low": 2.0}})
    live.control("reset", key="good", spec={"query": {"name": "conf_tree", "score": "votes"}}, at=5)
    live.control("configure", key="good", spec={"query": "random"})


@pytest.mark.parametrize("change", [older, newer], ids=["by-the-rules-of-then", "by-the-outcome"])
def test_words_that_a_release_did_not_have_change_nothing_on_replay(change: Callable[[Entry], Entry]) -> None:
    live = Logged(OLDER)
    feed_words(live)
    assert [letter.reason for letter in live.dead_letters] == ["bad-control"] * 5
    assert "came with version 9" in live.dead_letters[0].message
    task = replayed(live, change)
    assert {key for key, _ in task.models.keys.names()} == {"good"}
    assert not list(task.awaited.values())
    assert task.digest() == live.task.digest()
    good = task.models.cache.model(task.models.keys.slot("good"))
    assert good.spec.query.name == "random"


def exported() -> bytes:
    source = Partition(config(ALWAYS))
    source.instances(*({"features": {"x": n}, "label": "ab"[n % 2]} for n in range(20)))
    store = source.task.models
    origin: dict[str, Any] = {"prefix": "t.", "partition": 3, "positions": {}}
    return write_exported(store.record(store.keys.slot("m")), origin)


FILE = exported()


def refused_import(live: Logged, values: list[bytes]) -> None:
    for value in values:
        live.feed(Record("controls", b"k", value))
    assert [letter.reason for letter in live.dead_letters] == ["bad-control"]


@pytest.mark.parametrize("change", [older, newer], ids=["by-the-rules-of-then", "by-the-outcome"])
def test_a_model_of_a_newer_release_is_not_imported_on_replay(change: Callable[[Entry], Entry]) -> None:
    """Its last part was refused, and used up: the same parts can come again."""
    live = Logged(OLDER)
    refused_import(live, control_values(FILE, "one", size=-(-len(FILE) // 3)))
    assert "state version=9 must be at most 8" in live.dead_letters[0].message
    task = replayed(live, change)
    assert task.models.keys.slot("k") == -1
    assert task.unfinished_imports == live.task.unfinished_imports == 0
    assert task.digest() == live.task.digest()


def test_a_refused_part_gives_up_its_import_on_replay() -> None:
    live = Logged(config(ALWAYS))
    first, second, _ = control_values(FILE, "one", size=-(-len(FILE) // 3))
    damaged = orjson.dumps(orjson.loads(second) | {"crc": zlib.crc32(b"other")})
    refused_import(live, [first, damaged])
    task = replayed(live, newer)
    assert task.unfinished_imports == live.task.unfinished_imports == 0
    assert task.digest() == live.task.digest()


@pytest.mark.parametrize(
    ("value", "reason"),
    [(b"{", Reason.NOT_JSON), (None, Reason.NULL_VALUE), (b'{"command":"merge"}', Reason.UNKNOWN_COMMAND)],
)
def test_a_control_that_could_not_be_read_only_advances_time(value: bytes | None, reason: Reason) -> None:
    """A later release may have the command."""
    live = Logged(config(ALWAYS))
    live.control("create", key="m", schema=SCHEMA)
    live.feed(Record("controls", b"m", value, at=1000))
    assert [letter.reason for letter in live.dead_letters] == [reason]
    (entry,) = live.ledger.cut()
    assert [step.dead for step in entry.steps] == [(), ((1, 2),)]
    good = orjson.dumps({"command": "delete"})
    records = entry.steps[1].records
    assert records is not None
    readable = replace(entry.steps[1], records=replace(records, values=[good]))
    replay = Replay(PARTITION, live.reader(7))
    replay.apply(replace(entry, steps=(entry.steps[0], readable)))
    assert replay.task is not None
    assert replay.task.digest() == live.task.digest()
    assert replay.task.clock == live.task.clock


def test_a_control_without_room_for_its_model_is_listed_as_before() -> None:
    """Every release has read these: they are tried again on replay, without room."""
    live = Logged(config(ALWAYS, models_max_count=1))
    live.control("create", key="m", schema=SCHEMA)
    live.control("create", key="n", schema=SCHEMA)
    (entry,) = live.ledger.cut()
    assert [(step.refused, step.dead) for step in entry.steps] == [((), ()), (((1, 2),), ())]
    assert msgpack.unpackb(encode(entry))[0] == 3


def test_a_control_whose_output_is_too_large_was_carried_out() -> None:
    live = Logged(config(ALWAYS))
    effects = live.control("create", key="m", schema=SCHEMA)
    letter = DeadLetter(Origin.of(live.logs["controls"][0], 0), Reason.OUTPUT_TOO_LARGE, "a model event")
    step = step_of("controls", live.logs["controls"][0], 1, replace(effects, dead_letters=[letter]))
    assert step.dead == ()


def test_only_an_entry_with_a_refused_control_needs_the_newest_format() -> None:
    live = Logged(config(ALWAYS))
    live.control("create", key="m", schema=SCHEMA)
    (accepted,) = live.ledger.cut()
    live.control("create", key="m", schema=SCHEMA)
    (refused,) = live.ledger.cut()
    assert [msgpack.unpackb(encode(entry))[0] for entry in (accepted, refused)] == [3, 5]
    read = decode(encode(refused), partition=PARTITION)
    assert isinstance(read, Entry)
    assert (encode(read), read.steps[0].dead) == (encode(refused), ((1, 2),))


def test_a_control_that_is_refused_now_and_may_not_have_been_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    live = Logged(config(ALWAYS))
    live.control("create", key="m", spec={"query": "no-such"}, schema=SCHEMA)
    (entry,) = live.ledger.cut()
    for change, n_lines in ((newer, 0), (older, 1)):
        caplog.clear()
        replay = Replay(PARTITION, live.reader(7))
        replay.apply(change(entry))
        lines = [text for text in caplog.messages if "replayed without t.controls:3:0" in text]
        assert len(lines) == n_lines
