"""Models go from one place to another, whatever interrupts them, and only when nobody is at work on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from core.spec import Spec
from streamapp.tools.migration.errors import MigrationError
from streamapp.tools.migration.fingerprints import of_task
from streamapp.tools.migration.migration import Migration
from streamapp.tools.migration.old_place import Leaving, leaving
from streamapp.tools.offline.time_travel import Arrived
from streamapp.worker.restore.rebuild import Committed
from streamapp.worker.task.sources import SourceName, positions_of
from streamapp.worker.task.task import Task, TaskRun
from tests.positions import committed
from tests.topology.partition import ALWAYS, NOW, Partition, config
from topics.clients.partitioner import partition_of
from topics.columns.records import RawRecords

CONFIG = config(ALWAYS)
JUMP = CONFIG.event_time_max_jump_ms


class Old:
    """Partitions that have learned."""

    def __init__(self, *tasks: Task) -> None:
        self.tasks = tasks
        self.partitions = self.source_partitions = len(tasks)
        self.moved = 0

    def committed(self, partition: int) -> Committed:
        task = self.tasks[partition]
        return committed(**{source: at + self.moved for source, at in task.next.items()})

    def leaving(self, partition: int) -> Leaving | None:
        task = self.tasks[partition]
        if not task.next:
            return None
        return leaving(Arrived(task, positions_of(task.next), 0), "t.")

    def unprocessed(self, partition: int) -> dict[SourceName, int]:
        return {"instances": partition}


class New:
    """Logs of controls; the one who sends may fall over."""

    def __init__(self, partitions: int, piece_bytes: int = 1000) -> None:
        self.partitions = partitions
        self.piece_bytes = piece_bytes
        self.logs: list[list[tuple[bytes, bytes, int]]] = [[] for _ in range(partitions)]
        self.left = 1 << 30  # records until it falls
        self.flushed = 0

    def controls(self, partition: int) -> Iterator[RawRecords]:
        log = self.logs[partition]
        for start in range(0, len(log), 7):
            piece = log[start : start + 7]
            keys: list[bytes | None] = [key for key, _, _ in piece]
            values: list[bytes | None] = [value for _, value, _ in piece]
            times = [time for _, _, time in piece]
            offsets = list(range(start, start + len(piece)))
            yield RawRecords("n.controls", partition, offsets, times, keys, values, [()] * len(piece))

    def send(self, key: str, values: list[bytes], timestamp: int) -> None:
        for value in values:
            if not self.left:
                raise InterruptedError
            self.left -= 1
            name = key.encode()
            self.logs[partition_of(name, self.partitions)].append((name, value, timestamp))

    def flush(self) -> None:
        self.flushed = sum(map(len, self.logs))

    def worker(self, partition: int) -> Task:
        """Return the task of a worker that has read the controls."""
        task = Task(partition, CONFIG)
        for raw in self.controls(partition):
            assert not task.process(TaskRun("controls", raw)).dead_letters
        return task


def learned(*keys: str, n: int = 60) -> Partition:
    """Return a partition whose models have learned; each has a label that was asked for and does not come."""
    partition = Partition(CONFIG)
    for key in keys:
        for number in range(n):
            x = {"x": number % 10, "y": len(key)}
            label = "high" if number % 10 > 5 else "low"
            partition.instances({"id": f"i{number}", "features": x, "label": label}, key=key, at=number)
        partition.instances({"id": "asked", "features": {"x": 1}}, key=key)
    return partition


def old() -> Old:
    first, second = learned("a", "b", "c"), learned("dd", "ee")
    first.control("freeze", key="b")
    first.control("create", key="awaited", spec={"learner": "c-tree", "query": "never"})
    second.labels({"id": "early", "label": "low"}, key="dd")
    return Old(first.task, second.task, Task(2, CONFIG))


def snapshots(*tasks: Task) -> dict[str, bytes]:
    """Return the models of tasks, their open requests closed."""
    found = {}
    for task in tasks:
        for key, slot in task.models.keys.names():
            model = task.models.cache.model(slot)
            summary = model.summary()
            if summary.outstanding:
                model.close(-4, summary.outstanding)
            found[key] = model.snapshot()
    return found


def test_each_model_is_where_its_key_belongs_and_as_it_was() -> None:
    here, there = old(), New(5)
    migration = Migration(here, there, CONFIG)
    migration.run()
    report = migration.report
    assert (report.models, report.awaited, report.sent, report.verified) == (5, 1, 6, 6)
    assert (report.already, report.others) == (0, [])
    assert report.stays == (5, 5, 1, 0)
    assert there.flushed == sum(map(len, there.logs)) > 6, "in parts, and all of it durable"
    tasks = [there.worker(n) for n in range(5)]
    for task in tasks:
        keys = [*task.awaited, *(key for key, _ in task.models.keys.names())]
        assert {partition_of(key.encode(), 5) for key in keys} <= {task.partition}
    assert snapshots(*tasks) == snapshots(*here.tasks)
    awaited = {key: spec for task in tasks for key, spec in task.awaited.items()}
    assert awaited == {"awaited": Spec.parse({"learner": "c-tree", "query": "never"})}
    frozen = {
        key for task in tasks for key, slot in task.models.keys.names() if task.models.traits.frozen[slot]
    }
    assert frozen == {"b"}


def test_models_come_before_what_producers_have_sent_already() -> None:
    there = New(2)
    Migration(old(), there, CONFIG).run()
    assert {at for log in there.logs for _, _, at in log} == {NOW + 59 - JUMP}


@pytest.mark.parametrize("fall", [0, 1, 5, 12])
def test_what_was_interrupted_goes_on(fall: int) -> None:
    here, there = old(), New(3, piece_bytes=700)
    there.left = fall
    with pytest.raises(InterruptedError):
        Migration(here, there, CONFIG).run()
    there.left = 1 << 30
    before = Migration(here, there, CONFIG)
    before.look(exists=True)
    again = Migration(here, there, CONFIG)
    again.run()
    assert again.report.already == before.report.already == 6 - again.report.sent
    assert again.report.verified == 6
    assert snapshots(*map(there.worker, range(3))) == snapshots(*here.tasks)
    third = Migration(here, there, CONFIG)
    third.run()
    assert (third.report.sent, third.report.already) == (0, 6)


def test_what_has_learned_on_meanwhile_is_sent_anew() -> None:
    first = learned("a", "b")
    here, there = Old(first.task), New(2)
    Migration(here, there, CONFIG).run()
    first.instances({"id": "n", "features": {"x": 3}, "label": "low"}, key="a")
    first.control("create", key="b2")
    first.control("delete", key="b")
    first.control("create", key="b", spec={"learner": "c-tree"})
    again = Migration(here, there, CONFIG)
    again.run()
    assert (again.report.sent, again.report.already, again.report.verified) == (3, 0, 3)
    found: dict[str, bytes] = {}
    for number in range(2):
        found |= of_task(there.worker(number))
    assert found.keys() == {"a", "b", "b2"}


def test_a_look_sends_nothing() -> None:
    there = New(2)
    migration = Migration(old(), there, CONFIG)
    migration.look(exists=True)
    assert (migration.report.models, migration.report.sent, there.logs) == (5, 0, [[], []])
    assert migration.count_unprocessed() == {"instances": 3}


def test_models_that_were_there_are_named() -> None:
    there = New(1)
    there.send("mine", [b'{"command": "create"}'], 0)
    migration = Migration(old(), there, CONFIG)
    migration.run()
    assert migration.report.others == ["mine"]


def test_what_does_not_arrive_is_named() -> None:
    class Deaf(New):
        def send(self, key: str, values: list[bytes], timestamp: int) -> None:
            super().send(key, values if key != "ee" else [b'{"command": "import", "id": 5}'], timestamp)

    with pytest.raises(
        MigrationError, match=r"1 of 6 models .* \('ee'\); a worker would refuse: import: id="
    ):
        Migration(old(), Deaf(2), CONFIG).run()


def test_more_models_than_a_worker_takes_are_not_sent() -> None:
    few = replace(CONFIG, models_max_count=4)
    must = r"models.max.count=4 must be at least 5, .* raise it, here \(--set\) and for the new workers"
    planned = Migration(old(), New(2), few)
    planned.look(exists=True)
    assert re.match(must, planned.crowded())
    there = New(2)
    with pytest.raises(MigrationError, match=must):
        Migration(old(), there, few).run()
    enough = Migration(old(), there, replace(CONFIG, models_max_count=5))
    enough.run()
    assert (enough.report.verified, enough.crowded()) == (6, "")


def test_models_that_are_there_already_take_places_too() -> None:
    there = New(2)
    Migration(Old(learned("x", "y").task), there, CONFIG).run()
    with pytest.raises(MigrationError, match="a worker would refuse: .*models.max.count"):
        Migration(old(), there, replace(CONFIG, models_max_count=6)).run()


def test_workers_that_go_on_meanwhile_are_noticed() -> None:
    here = old()

    class Awaking(New):
        def flush(self) -> None:
            here.moved = 1

    with pytest.raises(
        MigrationError, match="workers went on with partition 0 of the old topics during the migration"
    ):
        Migration(here, Awaking(2), CONFIG).run()


def test_every_partition_is_a_step() -> None:
    migration: Any = Migration(old(), New(4), CONFIG)
    steps: list[int] = []
    migration.step = lambda: steps.append(1)
    migration.count_unprocessed()
    migration.run()
    assert len(steps) == migration.steps == 2 * 3 + 2 * 4
