"""Load of the machine: shares of a core by process between two checks, of other programs, and stolen time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rig.process import TICK, cpu_of_machine, cpu_of_tree, threads_of

COMPILERS = ("C1 CompilerThre", "C2 CompilerThre")  # threads of Java, with names cut by the kernel
IDLE, STOLEN = (3, 4), (7,)  # fields of /proc/stat


@dataclass(frozen=True)
class Look:
    """CPU seconds up to a moment."""

    at: float
    processes: dict[str, float]
    threads: dict[str, float]  # threads of the system under measurement
    compilers: float  # compilers of the broker's Java machine
    machine: float  # all processes, stolen time included
    idle: float
    stolen: float  # by the hypervisor


class Machine:
    """The processes of a measurement, with this process as the reader, and the broker if it runs on this
    machine.
    """

    def __init__(self, broker: int | None) -> None:
        """`broker` is its process id."""
        self._broker = broker

    def look(self, processes: Mapping[str, int], system: int) -> Look:
        """Return the CPU seconds up to now; `system` is the process whose threads are listed one by one."""
        pids = {**processes} if self._broker is None else {**processes, "broker": self._broker}
        compilers = 0.0
        if self._broker is not None:
            compilers = sum(threads_of(self._broker).get(name, 0.0) for name in COMPILERS)
        fields = [int(field) * TICK for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        return Look(
            time.monotonic(),
            {name: cpu_of_tree(pid) for name, pid in pids.items()} | {"reader": time.process_time()},
            threads_of(system),
            compilers,
            cpu_of_machine(),
            sum(fields[number] for number in IDLE),
            sum(fields[number] for number in STOLEN),
        )


def load_between(first: Look, last: Look) -> dict[str, float]:
    """Return shares of a core: of each process, the broker's compilers, other programs, stolen by the host,
    idle.
    """
    seconds = last.at - first.at
    spent = {name: last.processes[name] - before for name, before in first.processes.items()}
    stolen = last.stolen - first.stolen
    others = last.machine - first.machine - stolen - sum(spent.values())
    if "broker" in spent:
        spent["broker's compilers"] = last.compilers - first.compilers
    spent |= {"others": max(0.0, others), "stolen": stolen, "idle": last.idle - first.idle}
    return {name: round(value / seconds, 3) for name, value in spent.items()}


def threads_between(first: Look, last: Look) -> dict[str, float]:
    """Return shares of a core by thread of the measured system, without idle threads."""
    seconds = last.at - first.at
    shares = {
        name: round((value - first.threads.get(name, 0.0)) / seconds, 3)
        for name, value in last.threads.items()
    }
    return {name: share for name, share in shares.items() if share > 0}


def listener(port: int) -> int | None:
    """Return the process that listens on a TCP port of this machine; None if there is none, or it is not
    visible.
    """
    inodes = set()
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net") / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:  # LISTEN
                inodes.add(f"socket:[{fields[9]}]")
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(link.readlink()) in inodes:
                return int(link.parts[2])
        except OSError:
            continue  # it has ended, or belongs to another user
    return None


def broker_process(bootstrap: str) -> int | None:
    """Return the broker's process if it runs on this machine."""
    host, _, port = bootstrap.split(",", 1)[0].rpartition(":")
    return listener(int(port)) if host in ("localhost", "127.0.0.1", "[::1]") else None
