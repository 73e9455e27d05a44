"""Commands that a journal of an older release holds, and that its release did not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson
import pytest

from core.state_version import STATE_VERSION
from streamapp.worker.journal.entry import FORMAT_VERSION, Entry, Step
from streamapp.worker.restore.journal_replay import Replay
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.sources import SourceName
from streamapp.worker.task.task import Task, TaskRun
from tests.positions import at
from tests.topology.partition import ALWAYS, PARTITION, config
from topics.columns.records import RawRecords

SPEC = {"learner": "majority-class"}
COMMANDS: list[bytes] = [
    orjson.dumps({"command": "challenge", "spec": SPEC, "decide": "person", "warm_up": 0}),
    orjson.dumps({"command": "promote"}),
    orjson.dumps({"command": "challenge", "spec": SPEC}),
    orjson.dumps({"command": "drop"}),
]
INSTANCES: list[bytes] = [
    b'{"features":{"x":%d},"label":"%c"}' % (n % 4, b"ab"[n % 4 > 1]) for n in range(40)
]


def records(source: SourceName, values: Sequence[bytes], first: int, after: int) -> RawRecords:
    """Return the records of a source from an offset to before another one."""
    n = after - first
    columns = list(range(first, after)), [17] * n, [b"m"] * n, list(values[first:after]), [()] * n
    return RawRecords(f"t.{source}", PARTITION, *columns)


class Log:
    """The instances, in order; the journal itself holds the controls."""

    def __init__(self, source: SourceName, first: int) -> None:
        assert source == "instances"
        self._at = first

    def up_to(self, position: int, unread: object = ()) -> Iterator[RawRecords]:
        first, self._at = self._at, position
        yield records("instances", INSTANCES, first, position)


def replayed(version: int, commands: int) -> tuple[Replay, list[Effects]]:
    """Replay half of the instances, some of the commands, and the rest, in a journal of a state version."""
    seen: list[Effects] = []

    def process(task: Task, run: TaskRun) -> Effects:
        seen.append(task.process(run))
        return seen[-1]

    replay = Replay(PARTITION, Log, process=process)
    half, n = len(INSTANCES) // 2, len(INSTANCES)
    steps = [
        Step("instances", half, count=half),
        Step("controls", commands, records=records("controls", COMMANDS, 0, commands)),
        Step("instances", n, count=n - half),
    ]
    after = at(instances=n, controls=commands)
    steps = [step for step in steps if step.to]
    replay.apply(Entry(FORMAT_VERSION, version, "", at(), after, tuple(steps), config(ALWAYS).to_json()))
    return replay, seen


@pytest.mark.parametrize("version", [4, 8])
def test_commands_of_challenges_were_refused_by_releases_that_did_not_have_them(version: int) -> None:
    """The journal holds them among the records that were processed: they became dead letters then."""
    replay, seen = replayed(version, len(COMMANDS))
    without, _ = replayed(version, 0)
    assert replay.task is not None and without.task is not None
    letters = [letter for effects in seen for letter in effects.dead_letters]
    assert [letter.reason for letter in letters] == ["bad-control"] * len(COMMANDS)
    names = [orjson.loads(command)["command"] for command in COMMANDS]
    assert [letter.detail for letter in letters] == [
        f"{name}: state version 9 has this command first" for name in names
    ]
    assert not seen[1].happened
    models, other = replay.task.models, without.task.models
    assert (
        models.table.model(models.keys.slot("m")).snapshot()
        == other.table.model(other.keys.slot("m")).snapshot()
    )
    assert not models.keys.has_challengers


def test_they_are_carried_out_by_the_release_that_wrote_them() -> None:
    replay, seen = replayed(STATE_VERSION, len(COMMANDS))
    assert replay.task is not None
    assert not any(effects.dead_letters for effects in seen)
    events = [event.event for _, event, _ in seen[1].happened]
    assert events == ["challenged", "promoted", "challenged", "dropped"]
    models = replay.task.models
    assert models.table.model(models.keys.slot("m")).spec.learner.spelled == "majority-class"
