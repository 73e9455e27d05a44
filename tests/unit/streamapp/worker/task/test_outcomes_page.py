"""docs/outcomes.md: its counters are counted, its commands are carried out, its headers are sent."""

from __future__ import annotations

import re
from pathlib import Path

import orjson

from streamapp.worker.outputs.dead_letters import dead_letters
from streamapp.worker.task.controls import MEMBERS
from streamapp.worker.task.counters import MEANING
from streamapp.worker.task.effects.effects import DeadLetter, Origin
from tests.topology.partition import NEVER, Partition, Record, config
from topics.errors import Reason

PAGE = (Path(__file__).parents[5] / "docs" / "outcomes.md").read_text(encoding="utf-8")


def test_the_counters_are_those_that_are_counted() -> None:
    listed = PAGE.split("| counter | meaning |\n|---|---|\n")[1].strip().splitlines()
    assert listed == [f"| `{name}` | {meaning} |" for name, meaning in MEANING.items()]


def test_the_commands_are_carried_out_as_they_stand_there() -> None:
    examples = re.findall(r'```json title="control"\n(.*?)\n```', PAGE, re.S)
    partition = Partition(config(NEVER))
    partition.feed(*(Record("controls", b"m", example.encode()) for example in examples))
    assert [letter.message for letter in partition.dead_letters] == []
    assert partition.counts["controls.applied"] == len(examples)
    assert {orjson.loads(example)["command"] for example in examples} == set(MEMBERS)


def test_the_members_of_the_commands_are_listed() -> None:
    for command, members in MEMBERS.items():
        shown = ", ".join(f"`{member}`" for member in members)
        assert re.search(rf"^\| `{command}` \| {shown} ?\|", PAGE, re.M), command


def test_the_headers_of_dead_letters_are_listed() -> None:
    origin = Origin("t", 0, 0, 0, b"k", b"v", ())
    rows = ((0, Reason.BAD_ROWS),)
    letter = DeadLetter(origin, Reason.BAD_ROWS, "x", rows=rows, stacktrace="y", last_offset=1)
    outgoing = dead_letters("t", [letter], limit=0)
    assert outgoing.headers is not None
    sent = {name for name, _ in outgoing.headers[0]}
    assert set(re.findall(r"`((?:__streams\.errors|grove-dlq)[\w.-]*)`", PAGE)) == sent
