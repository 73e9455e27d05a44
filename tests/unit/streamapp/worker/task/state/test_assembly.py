"""No task is made of units that are damaged, missing, doubled, or not of one cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from core.kernels.records import offset
from core.layout.challenge_counts import DROPPED, ChallengeCounts
from core.measures.challenged_rows import Purse
from core.state_version import STATE_VERSION
from streamapp.errors import OtherReleaseError
from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.state.cut import TASK
from streamapp.worker.task.state.pending_unit import read_block
from streamapp.worker.task.task import Task
from streamapp.worker.task.unit import FRAME, DamagedStateError, Unit, UnitName, seal, unseal
from tests.property.test_task_cuts import SPECS, TTL, story
from tests.property.test_task_rollback import runs_of
from tests.topology.partition import PARTITION, Partition, config

CONFIG = config(SPECS["asks-again"], pending_ttl_ms=TTL, models_max_classes=6)


def played() -> Partition:
    partition = Partition(CONFIG)
    for run in runs_of(story(4, 300), 7):
        partition.feed(*run)
    partition.control("create", key="awaited")
    return partition


@pytest.fixture(scope="module")
def units() -> list[Unit]:
    found = list(played().task.cut().units())
    assert {unit.name.kind for unit in found} >= {"task", "model", "pending", "marks", "awaited", "early"}
    return found


def assemble(units: list[Unit]) -> Task:
    return Task.from_units(PARTITION, CONFIG, None, units)


def flips(data: bytes) -> Iterator[bytes]:
    for position in range(len(data)):
        altered = bytearray(data)
        altered[position] ^= 1 << position % 8
        yield bytes(altered)


def test_every_altered_byte_of_every_unit_is_noticed(units: list[Unit]) -> None:
    seen = set()
    for unit in units:
        if unit.name.kind in seen:
            continue
        seen.add(unit.name.kind)
        for data in flips(unit.data):
            with pytest.raises(DamagedStateError, match=r"unit .*; (restore|run)"):
                unseal(Unit(unit.name, data))
    assert len(seen) >= 6


@pytest.mark.parametrize(
    "head",
    [
        b"[" * 100_000,
        b"{",
        b"\xff",
        b"7",
        b'{"kind":"task"}',
        b'{"kind":"task","key":"","incarnation":0,"facts":7}',
    ],
)
def test_a_head_that_says_nothing_is_noticed_whoever_sealed_it(head: bytes) -> None:
    with pytest.raises(DamagedStateError, match="unit task: its head must hold kind, key"):
        unseal(Unit(TASK, FRAME.seal(head, ())))


@pytest.mark.parametrize("name", [b"[" * 100_000, b"{", b"\xff", b"7", b"[1,2]"])
def test_a_name_that_names_nothing_is_refused(name: bytes) -> None:
    with pytest.raises(DamagedStateError, match="must be JSON of a kind, a key and a number"):
        UnitName.decode(name)


def test_truncated_and_lengthened_units_are_noticed(units: list[Unit]) -> None:
    for unit in units:
        for data in (b"", unit.data[:20], unit.data[:-1], unit.data + b"\0"):
            with pytest.raises(DamagedStateError):
                unseal(Unit(unit.name, data))


def test_a_task_is_not_made_of_a_damaged_unit(units: list[Unit]) -> None:
    for number, unit in enumerate(units):
        damaged = bytearray(unit.data)
        damaged[len(damaged) // 2] ^= 4
        quota = ModelQuota(100)
        with pytest.raises(DamagedStateError, match="altered on its way"):
            Task.from_units(
                PARTITION,
                CONFIG,
                quota,
                [*units[:number], Unit(unit.name, bytes(damaged)), *units[number + 1 :]],
            )
        assert quota.taken == 0


def test_a_missing_unit_is_noticed(units: list[Unit]) -> None:
    for number, unit in enumerate(units):
        with pytest.raises(DamagedStateError, match="must be there|there must be|units must all"):
            assemble(units[:number] + units[number + 1 :])
        assert unit.name != TASK or number == len(units) - 1


def test_a_doubled_unit_is_noticed(units: list[Unit]) -> None:
    for unit in units:
        with pytest.raises(DamagedStateError, match="must be there once"):
            assemble([*units, unit])


def test_a_unit_under_another_name_is_noticed(units: list[Unit]) -> None:
    models = [unit for unit in units if unit.name.kind == "model"]
    swapped = [replace(models[0], name=models[1].name), replace(models[1], name=models[0].name)]
    others = [unit for unit in units if unit not in models[:2]]
    with pytest.raises(DamagedStateError, match="must be stored under its own name"):
        assemble(others + swapped)


def test_a_unit_left_over_from_an_earlier_cut_is_noticed() -> None:
    partition = played()
    first = partition.task.cut()
    old = {unit.name: unit for unit in first.units()}
    first.done()
    partition.feed(*story(4, 20)[:1])
    second = partition.task.cut()
    new = {unit.name: unit for unit in second.units()}
    assert assemble(list((old | new).values())).digest() == partition.task.digest()
    for name in new.keys() & old.keys():
        stale = old | new | {name: old[name]}
        with pytest.raises(DamagedStateError, match="some are from another cut|must|there"):
            assemble(list(stale.values()))


def test_two_lives_of_one_key_are_noticed(units: list[Unit]) -> None:
    model = next(unit for unit in units if unit.name.kind == "model")
    facts, body = unseal(model)
    twin = seal(UnitName("model", model.name.key, 99), facts, [body])
    with pytest.raises(DamagedStateError, match="only model of its key"):
        assemble([*units, twin])


def test_other_versions_kinds_and_partitions_are_refused(units: list[Unit]) -> None:
    altered = bytearray(units[0].data)
    altered[8] += 1
    with pytest.raises(DamagedStateError, match="has format 2; .*; run the release that wrote it"):
        assemble([Unit(units[0].name, bytes(altered)), *units[1:]])
    with pytest.raises(DamagedStateError, match="kind='mode' must be one of model, challenger, pending"):
        assemble([*units, seal(UnitName("mode", "x"), {})])
    with pytest.raises(DamagedStateError, match="partition=3 must be 4"):
        Task.from_units(4, CONFIG, None, units)
    facts, body = unseal(units[0])
    core = bytearray(body)
    core[12] = STATE_VERSION + 1
    model = seal(units[0].name, facts, [bytes(core)])
    with pytest.raises(OtherReleaseError, match="this build reads format 1 and state version"):
        assemble([model, *units[1:]])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"known_classes": 0}, "must fit its snapshot"),
        ({"known_classes": 1 << 40}, "must fit its snapshot"),
        ({"known_classes": None}, "must describe a model: TypeError"),
        ({"known_classes": "two"}, "must describe a model: ValueError"),
    ],
)
def test_facts_that_contradict_their_model_are_refused(
    units: list[Unit], wrong: dict[str, Any], says: str
) -> None:
    """Answers name classes by them: one that it does not know would stop the partition at its next record."""
    model = next(unit for unit in units if unit.name.kind == "model")
    facts, body = unseal(model)
    others = [unit for unit in units if unit is not model]
    with pytest.raises(DamagedStateError, match=says):
        assemble([seal(model.name, facts | wrong, [body]), *others])
    del facts["open"]
    with pytest.raises(DamagedStateError, match="KeyError"):
        assemble([seal(model.name, facts, [body]), *others])


@pytest.fixture(scope="module")
def challenged() -> list[Unit]:
    partition = Partition(CONFIG)
    partition.instances({"features": {"x": 1.0}, "label": "a"}, {"features": {"x": 2.0}, "label": "b"})
    effects = partition.control("challenge", spec={"learner": "majority-class"})
    assert not effects.dead_letters
    partition.instances({"features": {"x": 1.0}})
    return list(partition.task.cut().units())


PURSE = Purse.SIZE


@pytest.mark.parametrize(
    ("words", "decided_at", "says"),
    [
        ({0: 1 << 40, 1: 1 << 50}, None, "credits=1099511627776 must be from 0 to 32"),
        ({0: 5, 1: 4}, None, "credits=5 must be"),
        ({0: -1}, None, "credits=-1 must be"),
        ({}, 7, "decided_at=7 must be given with a decision, and only then"),
        ({PURSE + offset(ChallengeCounts, "decision"): DROPPED}, None, "decided_at=None must be given"),
    ],
)
def test_a_challenge_that_contradicts_itself_is_refused(
    challenged: list[Unit], words: dict[int, int], decided_at: int | None, says: str
) -> None:
    """A decision that no rule has taken, or millions of requests given up, would stop the partition later."""
    unit = next(unit for unit in challenged if unit.name.kind == "challenger")
    facts, body = unseal(unit)
    facts["challenge"]["words"] = [words.get(at, word) for at, word in enumerate(facts["challenge"]["words"])]
    facts["challenge"]["decided_at"] = decided_at
    others = [other for other in challenged if other is not unit]
    with pytest.raises(DamagedStateError, match=says):
        assemble([seal(unit.name, facts, [body]), *others])


@pytest.mark.parametrize("octave", [7, 127, -2])
def test_an_octave_out_of_its_range_is_refused(challenged: list[Unit], octave: int) -> None:
    """A kernel would count the label outside of its counts."""
    unit = next(unit for unit in challenged if unit.name.kind == "pending")
    rows, present = read_block(unit).rows, read_block(unit).present
    assert rows["octave"].tolist() == [-1] * len(rows)
    facts, body = unseal(unit)
    column, after = rows["octave"].tobytes(), present.astype("u1").tobytes()
    assert bytes(body).count(column + after) == 1
    altered = bytes(body).replace(column + after, bytes([octave % 256] * len(rows)) + after)
    with pytest.raises(DamagedStateError, match="octaves must be from -1 to 6"):
        read_block(seal(unit.name, facts, [altered]))


def test_the_order_of_the_units_does_not_matter(units: list[Unit]) -> None:
    digest = assemble(units).digest()
    assert assemble(units[::-1]).digest() == digest
    assert assemble(sorted(units, key=lambda unit: unit.data)).digest() == digest
