"""What a measurement prints: a table for people, or one JSON object per system."""

from __future__ import annotations

import sys
from typing import TextIO

import orjson

from benchmarks.rig.backlog import Backlog
from benchmarks.rig.passes import Result
from benchmarks.rig.systems import OURS

HEAD = (
    f"{'system':<26}{'rows/s':>12}{'(slowest … fastest)':>24}"
    f"{'CPU s/M':>9}{'MiB':>7}{'accuracy':>10}{'we are':>9}"
)


class Report:
    """Results go to `out`; what happens meanwhile goes to the error stream."""

    def __init__(self, out: TextIO, as_json: bool) -> None:
        self._out = out
        self._as_json = as_json

    def progress(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def backlog(self, backlog: Backlog, keys: int) -> None:
        size = backlog.bytes / backlog.rows
        records = f"{backlog.records:,} {backlog.format} records"
        self.progress(f"{backlog.rows:,} rows in {records}, {size:.0f} bytes a row, {keys} model keys")

    def results(self, results: list[Result]) -> None:
        ours = next((result.records_per_second for result in results if result.system == OURS), None)
        if not self._as_json:
            print(HEAD, file=self._out)
        for result in results:
            ratio = None if ours is None else ours / result.records_per_second
            self._print(result, ratio)
        self._out.flush()

    def _print(self, result: Result, ratio: float | None) -> None:
        if self._as_json:
            line = result.to_dict() | {"ratio": None if ratio is None else round(ratio, 3)}
            print(orjson.dumps(line).decode(), file=self._out)
            return
        spread = f"({result.slowest:,.0f} … {result.fastest:,.0f})"
        accuracy = "" if result.accuracy is None else f"{result.accuracy:.4f}"
        times = "" if ratio is None else f"{ratio:.2f} ×"
        print(
            f"{result.system:<26}{result.records_per_second:>12,.0f}{spread:>24}"
            f"{result.cpu_seconds_per_million:>9.1f}{result.peak_mib:>7.0f}{accuracy:>10}{times:>9}",
            file=self._out,
        )
