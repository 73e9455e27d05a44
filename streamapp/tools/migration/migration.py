"""Migration: compare both places, send the models that are missing, compare again."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

import orjson

from core.spec import Spec
from streamapp.tools.migration.errors import MigrationError
from streamapp.tools.migration.fingerprints import Fingerprints, of_awaited, of_file, of_task
from streamapp.tools.migration.old_place import Leaving, Stays
from streamapp.worker.restore.rebuild import Committed
from streamapp.worker.task.models.files.importing import control_values
from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.sources import Positions, SourceName
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from topics.columns.records import RawRecords

NAMED: Final = 5
"""Keys that a line lists; of further keys it gives the number."""

REFUSALS_TOLD: Final = 3


class Old(Protocol):
    """The place from which models are migrated."""

    @property
    def partitions(self) -> int:
        """Partitions that have models."""

    @property
    def source_partitions(self) -> int:
        """Partitions that may have records."""

    def committed(self, partition: int) -> Committed:
        """Return the group's positions."""

    def leaving(self, partition: int) -> Leaving | None:
        """Return the models of a partition; None if no record of it was processed."""

    def unprocessed(self, partition: int) -> Mapping[SourceName, int]:
        """Return how many records of each source the group has not committed."""


class New(Protocol):
    """The place to which models are migrated."""

    partitions: int

    @property
    def piece_bytes(self) -> int:
        """Bytes of a model file in a record."""

    def controls(self, partition: int) -> Iterable[RawRecords]:
        """Return the records of `controls`."""

    def send(self, key: str, values: list[bytes], timestamp: int) -> None:
        """Send commands to the model of a key."""

    def flush(self) -> None:
        """Return when all records are durable."""


@dataclass(slots=True)
class Report:
    """Counts of a migration."""

    models: int = 0
    awaited: int = 0  # keys whose model awaits its first instance
    already: int = 0  # models and keys that were at the new place
    sent: int = 0
    bytes: int = 0  # of the files that were sent
    verified: int = 0
    stays: Stays = Stays()  # noqa: RUF009 - frozen
    unprocessed: Counter[str] = field(default_factory=Counter)
    others: list[str] = field(default_factory=list)  # keys at the new place that the old one does not have


class Migration:
    """The migration of models from one place to another."""

    def __init__(
        self,
        old: Old,
        new: New,
        config: TaskConfig,
    ) -> None:
        """`config`: settings of the workers at the new place."""
        self._old, self._new, self._config = old, new, config
        self.step: Callable[[], None] = lambda: None
        """Called after each partition."""
        self._wanted: Fingerprints = {}
        self._positions: dict[int, Positions] = {}
        self.report = Report()

    @property
    def steps(self) -> int:
        """Number of calls of `step` in a run."""
        return self._old.source_partitions + self._old.partitions + 2 * self._new.partitions

    def count_unprocessed(self) -> Counter[str]:
        """Count the records of each source that the group has not committed."""
        for partition in range(self._old.source_partitions):
            self.report.unprocessed.update(self._old.unprocessed(partition))
            self.step()
        return self.report.unprocessed

    def look(self, *, exists: bool) -> None:
        """Count what a run would do; exists: whether the new place exists."""
        self._go_through(self._there()[0] if exists else {}, None)

    def run(self) -> None:
        """Send the missing models; MigrationError if some are missing afterwards."""
        there, _ = self._there()
        self._go_through(there, self._new)
        self._new.flush()
        self._verify()
        self._check_no_progress()

    def crowded(self) -> str:
        """Return why a worker would refuse some of the models; empty if it would not."""
        most, n = self._config.models_max_count, self.report.models
        if n <= most:
            return ""
        return (
            f"models.max.count={most} must be at least {n}, because at least {n} models go to the new "
            "place, and the first worker to start there has all of them for a while; raise it, here (--set) "
            "and for the new workers"
        )

    # -- steps ----------------------------------------------------------------------------------------------

    def _go_through(self, there: Fingerprints, new: New | None) -> None:
        for partition in range(self._old.partitions):
            leaving = self._old.leaving(partition)
            if leaving is not None:
                self._positions[partition] = leaving.positions
                self._take(leaving, there, new)
            self.step()

    def _take(self, leaving: Leaving, there: Fingerprints, new: New | None) -> None:
        report = self.report
        report.stays = report.stays.and_also(leaving.stays)
        report.models += len(leaving.models)
        report.awaited += len(leaving.awaited)
        if new is not None and (why := self.crowded()):
            raise MigrationError(why)
        # Earlier than all instances that producers may have sent to the new place: models come first there.
        jump = self._config.event_time_max_jump_ms
        timestamp = 0 if leaving.clock is None else max(leaving.clock - jump, 1)
        for key, data in leaving.models.items():
            if self._is_missing(key, of_file(data), there) and new is not None:
                new.send(key, import_of(data, new.piece_bytes), timestamp)
                report.sent, report.bytes = report.sent + 1, report.bytes + len(data)
        for key, spec in leaving.awaited.items():
            if self._is_missing(key, of_awaited(spec), there) and new is not None:
                new.send(key, create_of(spec, anew=key in there), timestamp)
                report.sent += 1

    def _is_missing(self, key: str, fingerprint: bytes, there: Fingerprints) -> bool:
        self._wanted[key] = fingerprint
        is_there = there.get(key) == fingerprint
        self.report.already += is_there
        return not is_there

    def _there(self) -> tuple[Fingerprints, list[str]]:
        fingerprints: Fingerprints = {}
        refused: list[str] = []
        quota = ModelQuota(self._config.models_max_count)  # the first worker to start gets all partitions
        for partition in range(self._new.partitions):
            here, refusals = in_effect(partition, self._new.controls(partition), self._config, quota)
            fingerprints |= here
            refused += refusals
            self.step()
        return fingerprints, refused

    def _verify(self) -> None:
        there, refused = self._there()
        wrong = sorted(key for key, fingerprint in self._wanted.items() if there.get(key) != fingerprint)
        if wrong:
            why = f"; a worker would refuse: {refused[-1]}" if refused else ""
            message = (
                f"{len(wrong)} of {len(self._wanted)} models are not at the new place as they were sent "
                f"({named(wrong)}){why}; run it again, it goes on where it is, or choose another --to-prefix"
            )
            raise MigrationError(message)
        self.report.verified = len(self._wanted)
        self.report.others = sorted(there.keys() - self._wanted.keys())

    def _check_no_progress(self) -> None:
        for partition, positions in self._positions.items():
            now = self._old.committed(partition)
            if any(at is not None and at != positions[source] for source, at in now.items()):
                message = (
                    f"workers went on with partition {partition} of the old topics during the migration; "
                    "stop them and run it again: changed models are sent again"
                )
                raise MigrationError(message)


def named(keys: list[str]) -> str:
    """Return the first NAMED keys in words, and the number of the rest."""
    shown = ", ".join(map(repr, keys[:NAMED]))
    return shown if len(keys) <= NAMED else f"{shown} and {len(keys) - NAMED} more"


def import_of(data: bytes, piece_bytes: int) -> list[bytes]:
    """Return the values of controls that make a file the model of a key, and replace its present model."""
    return control_values(data, secrets.token_hex(8), size=piece_bytes, replace=True)


def create_of(spec: Spec, *, anew: bool) -> list[bytes]:
    """Return the values of controls after which a key awaits its first instance; anew: it has a model now."""
    create = {"command": "create", "spec": spec.to_dict()}
    return [orjson.dumps(control) for control in ([{"command": "delete"}] if anew else []) + [create]]


def in_effect(
    partition: int, controls: Iterable[RawRecords], config: TaskConfig, quota: ModelQuota
) -> tuple[Fingerprints, list[str]]:
    """Return a worker's models after it has read the controls of a partition, and its last few refusals.

    `quota`: the quota for all models of the worker.
    """
    task = Task(partition, config, quota)
    refused: list[str] = []
    for raw in controls:
        effects = task.process(TaskRun("controls", raw))
        refused += [letter.detail for letter in effects.dead_letters]
    return of_task(task), refused[-REFUSALS_TOLD:]
