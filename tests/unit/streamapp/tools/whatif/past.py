"""A partition with a past: what `grove whatif` reads, without a broker."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterator
from typing import Any

from streamapp.tools.offline.time_travel import Departure
from streamapp.tools.whatif.whatif_run import compare, whatif
from streamapp.worker.restore.journal_replay import Process
from streamapp.worker.task.task import Task
from tests.topology.partition import NOW, PARTITION, QUICK, config
from tests.unit.streamapp.tools.offline.archive import Archive
from topics.columns.records import RawRecords

DELAY = 15
"""Records between an instance and its label."""


class Past:
    """An archive, read as a stored partition is read."""

    number = PARTITION

    def __init__(self, archive: Archive, piece: int = 1000) -> None:
        self.archive = archive
        self.piece = piece
        self.predictions = [(each.key, each.value) for each in archive.sent["predictions"]]

    def depart(self, offset: int | None, process: Process = Task.process) -> Departure:
        travel = self.archive.travel(self.piece, process)
        return travel.from_earliest() if offset is None else travel.from_record(offset)

    def go_on(self, departure: Departure) -> None:
        departure.go_on()

    def offset_at(self, timestamp: int) -> int:
        raws = self.archive.logs["instances"]
        times = [(at, offset) for raw in raws for at, offset in zip(raw.timestamps, raw.offsets, strict=True)]
        return next((offset for at, offset in times if at >= timestamp), len(times))

    def predictions_since(self, timestamp: int) -> Iterator[RawRecords]:
        for offset, (key, value) in enumerate(self.predictions):
            yield RawRecords("p", PARTITION, [offset], [0], [key], [value], [()])

    def under(self, given: Any, since: int | None = None, key: str = "m") -> dict[str, Any]:
        """Return the report; `given`: the spec, `since`: ms after NOW."""
        return whatif(self, key, *arguments(given, since))

    def second(self, given: Any, since: int | None = None) -> Task:
        """Return the task with the other spec, at the end."""
        return compare(self, "m", *arguments(given, since))[0].second


def arguments(given: Any, since: int | None) -> tuple[str, int | None]:
    text = given if isinstance(given, str) else json.dumps(given)
    return text, None if since is None else NOW + since


def spec(**parts: Any) -> dict[str, Any]:
    return {"learner": QUICK} | parts


def true_class(x: int, y: int) -> str:
    return "high" if (x > 5) != (y > 7) else "low"


class Stream:
    """Instances of two models, one a second, and the labels that were requested, some records later."""

    def __init__(self, archive: Archive, seed: int = 1, lost: float = 0.1) -> None:
        self.archive = archive
        self.n = 0
        self._draw = random.Random(seed)
        self._lost = lost
        self._due: list[tuple[int, dict[str, Any]]] = []
        self._answered = 0

    def send(self, n: int, *, labelled: bool = False) -> None:
        for _ in range(n):
            x, y = self._draw.randrange(12), self._draw.randrange(12)
            body = {"id": f"i{self.n}", "features": {"x": x, "y": y}}
            label = {"label": true_class(x, y)}
            at = 1000 * self.n
            self.archive.instances(body | label if labelled else body, at=at)
            self.archive.instances({"id": body["id"], "features": {"x": x}}, key="other", at=at)
            fresh = self.archive.requests[self._answered :]
            self._answered += len(fresh)
            asked = any("y" in each["features"] for each in fresh)  # not of the other model
            if self._draw.random() >= self._lost and asked:
                self._due.append((self.n + DELAY, {"id": body["id"]} | label))
            while self._due and self._due[0][0] <= self.n:
                self.archive.labels(self._due.pop(0)[1], at=at)
            self.n += 1
            if self._draw.random() < 0.1:
                self.archive.commit()

    def end(self) -> Past:
        self.archive.commit()
        return Past(self.archive)


def past(given: dict[str, Any], n: int = 400, lost: float = 0.1) -> Past:
    """Return a past of n instances; tests share its archive, which they only read."""
    return Past(_archive(json.dumps(given), n, lost))


@functools.cache
def _archive(given: str, n: int, lost: float) -> Archive:
    stream = Stream(Archive(config(json.loads(given))), lost=lost)
    stream.send(n)
    return stream.end().archive
