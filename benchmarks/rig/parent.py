"""A parent with several workers, as one member of a trial, and the steps in which it replaces one of them."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

from benchmarks.rig.member import ASSIGNED, LIVE, Member
from benchmarks.rig.systems import Options
from streamapp.worker.reserved_ports import free_ports
from topics.definitions import TopicNames

PREPARED: Final = "a process is prepared for the next start of a worker"
STEPS: Final = {  # the log line at which a step of a replacement ends
    "noticed": re.compile("worker .* ended with .*"),
    "topics_checked": re.compile("pages at .*"),
    "kernels_ready": re.compile("kernels of .* are ready .*"),
    "assigned": ASSIGNED,
}


class ParentMember(Member):
    """`grove worker --workers N`."""

    def __init__(
        self,
        name: str,
        options: Options,
        names: TopicNames,
        partitions: int,
        group: str,
        place: Path,
        workers: int,
        *words: str,
    ) -> None:
        super().__init__(name, options, names, partitions, group, place, "--workers", str(workers), *words)
        self.workers = [f"{name}-{number}" for number in range(1, workers + 1)]
        self._ports = free_ports(workers + 1)

    def start(self) -> None:  # type: ignore[override]
        super().start({"GROVE_WEB_PORT": str(self._ports)})
        self._port = str(self._ports)

    def kill(self) -> None:
        """Kill the parent, and wait for the end of its workers, which write to disk until then."""
        with contextlib.ExitStack() as open_files:
            ends = []
            for worker in self.workers:
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # never started, or ended
                    ends.append(os.pidfd_open(self.process_of(worker)))
                    open_files.callback(os.close, ends[-1])
            super().kill()
            for end in ends:
                select.select([end], [], [])

    def owned(self, worker: str = "") -> set[int]:
        """Return the partitions of one worker, or of all."""
        if worker:
            return super().owned(worker)
        return set().union(*(super(ParentMember, self).owned(name) for name in self.workers))

    def prepared(self) -> int:
        """Return the number of processes that were prepared."""
        return sum(text == PREPARED for _, text in self.said())

    def kill_worker(self, worker: str) -> float:
        """Kill one worker; return when (seconds since the epoch)."""
        process, at = self.process_of(worker), time.time()
        os.kill(process, signal.SIGKILL)
        return at

    def process_of(self, worker: str) -> int:
        """Return the process id of a worker."""
        return int((self.state / worker / "lock").read_text())

    def prepared_process(self) -> int:
        """Return the process id of the prepared process."""
        for line in Path("/proc").glob("[0-9]*/cmdline"):
            words = line.read_bytes().split(b"\0")
            pid = int(line.parent.name)
            if b"--prepared" in words and b"--" not in words and self.pid in ancestors(pid):
                return pid
        raise self._failed("has no prepared process")

    def grove(self, *words: str) -> None:
        """Run a command with the parent's settings; it must succeed."""
        command = [self._command[0], *words]
        command_run = subprocess.run(
            command, env={**os.environ, **self._environment}, capture_output=True, text=True, check=False
        )
        if command_run.returncode:
            raise self._failed(f"had a command {' '.join(words)} that failed: {command_run.stderr}")

    def steps(self, worker: str, since: float) -> dict[str, float]:
        """Return the seconds from `since` to the end of each step of a worker's replacement."""
        lines = [
            (at - since, text) for name in ("parent", worker) for at, text in self.said(name) if at >= since
        ]
        ends = {step: [at for at, text in lines if end.fullmatch(text)] for step, end in STEPS.items()}
        live = [at for at, text in lines if LIVE.fullmatch(text)]
        first = {step: min(times) for step, times in ends.items() if times}
        last = {"live": max(live)} if live else {}
        return {name: round(at, 3) for name, at in (first | last).items()}


def ancestors(pid: int) -> list[int]:
    """Return the processes above a process, the nearest first."""
    above = []
    while pid > 1:
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat[stat.rindex(")") + 2 :].split()[1])
        above.append(pid)
    return above
