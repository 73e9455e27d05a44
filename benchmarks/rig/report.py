"""Report: a table for people, or one JSON object per system."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any, TextIO

import orjson

from benchmarks.rig.backlog import Backlog
from benchmarks.rig.latency import Latency
from benchmarks.rig.passes import Result
from benchmarks.rig.stages import Stage
from benchmarks.rig.systems import OURS

HEAD = (
    f"{'system':<26}{'format':<8}{'rows/s':>12}{'(slowest … fastest)':>24}{'last quarter':>14}"
    f"{'CPU s/M':>9}{'last q.':>9}{'MiB':>7}{'accuracy':>10}{'we are':>9}"
)


class Report:
    """Results go to `out`, progress goes to the error stream."""

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
        """Print one line for each system and format; `ratio` is our rate in that format, divided by its."""
        ours = {result.format: result.records_per_second for result in results if result.system == OURS}
        if not self._as_json:
            print(HEAD, file=self._out)
        for result in results:
            us = ours.get(result.format)
            ratio = None if us is None else us / result.records_per_second
            self._print(result, ratio)
        self._out.flush()

    def guarantees(self, lines: list[dict[str, Any]]) -> None:
        """Print one line for each guarantee of each system; the first guarantee is the base of the
        comparison.

        `ratio` is our rate divided by the system's rate with the same guarantee.
        """
        ours = {figures["guarantee"]: figures for figures in lines if figures["system"] == OURS}
        if not self._as_json:
            print(
                f"{'system':<26}{'guarantee':<16}{'partitions':>11}{'rows/s':>12}{'of first':>10}"
                f"{'last quarter':>14}{'CPU s/M':>9}{'of first':>10}{'last q.':>9}"
                f"{'accuracy':>10}{'we are':>9}",
                file=self._out,
            )
        for figures in lines:
            us = ours.get(figures["guarantee"])
            rate = figures["records_per_second"]
            ratio = None if us is None else us["records_per_second"] / rate
            if self._as_json:
                more = {"ratio": None if ratio is None else round(ratio, 3)}
                print(orjson.dumps(figures | more).decode(), file=self._out)
                continue
            last = figures["last_quarter_records_per_second"], figures["last_quarter_cpu_seconds_per_million"]
            print(
                f"{figures['system']:<26}{figures['guarantee']:<16}{figures['partitions']:>11}{rate:>12,.0f}"
                f"{figures['rate_ratio']:>10.2f}{shown(last[0], ',.0f'):>14}"
                f"{figures['cpu_seconds_per_million']:>9.1f}{figures['cpu_ratio']:>10.2f}"
                f"{shown(last[1], '.1f'):>9}"
                f"{shown(figures['accuracy'], '.4f'):>10}{shown(ratio, '.2f'):>9}",
                file=self._out,
            )
        self._out.flush()

    def latencies(self, lines: list[Latency]) -> None:
        """Print the percentiles of all systems, each followed by the echo that ran at the same time."""
        if not self._as_json:
            print(
                f"{'system':<26}{'guarantee':<16}{'commit ms':>10}{'p50 ms':>9}{'p99 ms':>9}"
                f"{'p99.9 ms':>10}{'max ms':>9}{'p99 - echo':>12}{'CPU s/M':>9}",
                file=self._out,
            )
        for latency in lines:
            if self._as_json:
                print(orjson.dumps(asdict(latency)).decode(), file=self._out)
            else:
                line = (
                    f"{latency.system:<26}{latency.guarantee:<16}{latency.commit_ms:>10}{latency.p50:>9.1f}"
                )
                line += f"{latency.p99:>9.1f}{latency.p999:>10.1f}{latency.most:>9.1f}"
                line += f"{latency.p99_beyond_echo:>12.1f}"
                print(f"{line}{latency.cpu_seconds_per_million:>9.1f}", file=self._out)
                for what in (latency.load, latency.threads, latency.ages, latency.spent):
                    if what:
                        print(
                            "    " + ", ".join(f"{name} {value}" for name, value in what.items()),
                            file=self._out,
                        )
        self._out.flush()

    def stages(self, measured: list[Stage]) -> None:
        if not self._as_json:
            print(f"{'stage':<44}{'µs a row':>10}{'share':>8}", file=self._out)
        total = sum(stage.microseconds for stage in measured)
        for stage in [*measured, Stage("all", total)]:
            if self._as_json:
                print(orjson.dumps(asdict(stage)).decode(), file=self._out)
            else:
                share = stage.microseconds / total
                print(f"{stage.name:<44}{stage.microseconds:>10.2f}{share:>8.1%}", file=self._out)
        self._out.flush()

    def _print(self, result: Result, ratio: float | None) -> None:
        if self._as_json:
            line = result.to_dict() | {"ratio": None if ratio is None else round(ratio, 3)}
            print(orjson.dumps(line).decode(), file=self._out)
            return
        spread = f"({result.slowest:,.0f} … {result.fastest:,.0f})"
        print(
            f"{result.system:<26}{result.format:<8}{result.records_per_second:>12,.0f}{spread:>24}"
            f"{shown(result.last_quarter_records_per_second, ',.0f'):>14}"
            f"{result.cpu_seconds_per_million:>9.1f}"
            f"{shown(result.last_quarter_cpu_seconds_per_million, '.1f'):>9}"
            f"{result.peak_mib:>7.0f}{shown(result.accuracy, '.4f'):>10}{shown(ratio, '.2f'):>9}",
            file=self._out,
        )


def shown(value: float | None, form: str) -> str:
    """Return a number as it is printed; an empty text for None."""
    return "" if value is None else format(value, form)
