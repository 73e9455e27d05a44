"""The streams of the benchmarks as arrays in memory: real data sets and generators."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

FOLDER_VARIABLE = "GROVE_DATASETS"


@dataclass(frozen=True)
class Rows:
    """Records in memory: x float64[n, d] (codes for nominal values), y int32[n].

    ``attributes`` holds None for a numeric attribute, otherwise the number of its values.
    """

    name: str
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.int32]
    attributes: tuple[int | None, ...]
    classes: int

    def first(self, records: int) -> Rows:
        """Return the first records only."""
        return Rows(self.name, self.x[:records], self.y[:records], self.attributes, self.classes)


def folder() -> Path:
    """Return the folder of the data sets: GROVE_DATASETS, else ../shared/datasets beside the project."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else Path(__file__).parents[2] / "shared" / "datasets"


def _cells(name: str, *, skip: int = 0, arff: bool = False) -> list[list[str]]:
    with gzip.open(folder() / name, "rt", encoding="utf-8", newline=None) as file:
        if arff:
            for line in file:
                if line.strip().lower() == "@data":
                    break
        for _ in range(skip):
            next(file)
        return [[cell.strip() for cell in row] for row in csv.reader(file) if row]


def _codes(cells: Iterable[str], known: list[str] | None = None) -> tuple[list[int], int]:
    """Return the code of every cell, in the order given or of first appearance, and how many there are."""
    codes = {value: code for code, value in enumerate(known or [])}
    return [codes.setdefault(cell, len(codes)) for cell in cells], len(codes)


def _table(
    name: str, rows: list[list[str]], nominal: dict[int, list[str] | None], classes: list[str] | None
) -> Rows:
    columns = list(zip(*rows, strict=True))
    values: list[npt.NDArray[np.float64]] = []
    attributes: list[int | None] = []
    for position, cells in enumerate(columns[:-1]):
        if position in nominal:
            codes, count = _codes(cells, nominal[position])
            values.append(np.array(codes, np.float64))
            attributes.append(count)
        else:
            values.append(np.array(cells, np.float64))
            attributes.append(None)
    labels, count = _codes(columns[-1], classes)
    x = np.ascontiguousarray(np.column_stack(values))
    return Rows(name, x, np.array(labels, np.int32), tuple(attributes), count)


def electricity() -> Rows:
    """Electricity (Elec2), 45,312 records, 8 attributes."""
    return _table(
        "electricity", _cells("elecNormNew.arff.gz", arff=True), {1: list("1234567")}, ["UP", "DOWN"]
    )


def airlines() -> Rows:
    """Airlines, 539,383 records, 4 of 7 attributes nominal."""
    return _table("airlines", _cells("airlines.csv.gz", skip=1), dict.fromkeys((0, 2, 3, 4)), ["0", "1"])


def kdd99() -> Rows:
    """KDD Cup 1999, the 10 % file: 494,021 records, 41 attributes, 23 classes."""
    nominal = dict.fromkeys((1, 2, 3, 6, 11, 20, 21))
    return _table("kdd99", _cells("kddcup.data_10_percent.gz"), nominal, None)


def a9a() -> Rows:
    """a9a followed by a9a.t (UCI Adult, 123 binary attributes taken as numbers), 48,842 records."""
    x = np.zeros((48_842, 123))
    y = np.zeros(48_842, np.int32)
    record = 0
    for name in ("a9a.gz", "a9a.t.gz"):
        with gzip.open(folder() / name, "rt", encoding="utf-8") as file:
            for line in file:
                label, *pairs = line.split()
                y[record] = label == "+1"
                for pair in pairs:
                    position, value = pair.split(":")
                    x[record, int(position) - 1] = float(value)
                record += 1
    return Rows("a9a", x, y, (None,) * 123, 2)


REAL: dict[str, Callable[[], Rows]] = {
    "electricity": electricity,
    "airlines": airlines,
    "kdd99": kdd99,
    "a9a": a9a,
}


def cached(name: str) -> Rows:
    """Return a real data set, parsed once per machine and kept as an array file."""
    from benchmarks.peers.places import cache

    kept = cache() / "datasets" / f"{name}.npz"
    if kept.exists():
        with np.load(kept) as file:
            attributes = tuple(None if count < 0 else int(count) for count in file["attributes"])
            return Rows(name, file["x"], file["y"], attributes, int(file["classes"]))
    rows = REAL[name]()
    kept.parent.mkdir(parents=True, exist_ok=True)
    written = io.BytesIO()
    np.savez(
        written,
        x=rows.x,
        y=rows.y,
        attributes=[-1 if values is None else values for values in rows.attributes],
        classes=rows.classes,
    )
    partial = kept.with_suffix(f".{os.getpid()}")
    partial.write_bytes(written.getvalue())
    partial.replace(kept)
    return rows
