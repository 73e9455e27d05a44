"""Share of a core: a quota of the kernel on the CPU of a process, so that many workers fit on two cores."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PERIOD_US = 20_000
"""Time over which the quota is counted. A worker that has used its quota stands still for the rest of it, so
a longer period would add more latency to each request."""
LEAST_QUOTA_US = 1_000  # the smallest that the kernel accepts


MOST_WEIGHT = {1: ("cpu.shares", "262144"), 2: ("cpu.weight", "10000")}
"""The file of each version with the weight beside other cgroups, and the largest weight: a process gets
its quota on a busy machine, too."""


class NoCoreShares(RuntimeError):
    """This machine does not let the program limit the CPU of a process."""


@dataclass(frozen=True)
class Hierarchy:
    """A tree of cgroups with quotas of CPU."""

    parent: Path
    """The folder of the cgroup below which new cgroups are made."""
    version: int

    def write_quota(self, group: Path, quota_us: int, period_us: int) -> None:
        if self.version == 1:
            (group / "cpu.cfs_period_us").write_text(str(period_us))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (group / "cpu.max").write_text(f"{quota_us} {period_us}")
        name, weight = MOST_WEIGHT[self.version]
        (group / name).write_text(weight)


@contextmanager
def core_share(pid: int, share: float, hierarchy: Hierarchy | None = None) -> Iterator[Path]:
    """Hold a process and its threads to a share of a core for a `with` block; yield the folder of its cgroup.

    Raises NoCoreShares if neither cgroups v1 nor v2 can be written here.
    """
    quota_us, period_us = quota_of(share)
    tree = hierarchy or find_hierarchy()
    group = tree.parent / f"bench-{uuid.uuid4().hex[:8]}"
    try:
        group.mkdir()
    except OSError as error:
        raise _refused(tree.parent, error) from error
    try:
        try:
            tree.write_quota(group, quota_us, period_us)
            (group / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            raise _refused(group, error) from error
        yield group
    finally:
        _release(group, tree.parent)


def quota_of(share: float) -> tuple[int, int]:
    """Return quota and period in µs; the period is longer for shares below the smallest quota."""
    cores = os.cpu_count() or 1
    if not 0.0 < share <= cores:
        message = f"a share of {share} cores must be above 0 and at most {cores}, the cores of this machine"
        raise ValueError(message)
    period = max(PERIOD_US, round(LEAST_QUOTA_US / share))
    return max(LEAST_QUOTA_US, round(share * period)), period


def find_hierarchy(mounts: Path = Path("/proc/mounts"), own: Path = Path("/proc/self/cgroup")) -> Hierarchy:
    """Return the hierarchy with quotas of CPU, at the cgroup of this process if its folder is visible."""
    for line in mounts.read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            return Hierarchy(_own_folder(Path(place), own, "cpu"), 1)
    for line in mounts.read_text().splitlines():
        _, place, kind, *_ = line.split()
        controllers = Path(place) / "cgroup.controllers"
        if kind == "cgroup2" and controllers.exists() and "cpu" in controllers.read_text().split():
            return Hierarchy(_with_cpu(Path(place)), 2)
    message = "no hierarchy of cgroups has the controller cpu: mount one, or run as root of a container"
    raise NoCoreShares(message)


def _own_folder(place: Path, own: Path, controller: str) -> Path:
    """Return the folder of this process's cgroup; the mount point where a namespace hides it."""
    for line in own.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            folder = place / path.lstrip("/")
            return folder if folder.is_dir() else place
    return place


def _with_cpu(place: Path) -> Path:
    """Return the root of cgroups v2, whose children have the controller cpu.

    A cgroup that has processes cannot pass controllers on to its children, so children of the root are used.
    """
    enabled = place / "cgroup.subtree_control"
    if "cpu" not in enabled.read_text().split():
        try:
            enabled.write_text("+cpu")
        except OSError as error:
            raise _refused(enabled, error) from error
    return place


def _release(group: Path, parent: Path) -> None:
    """Move the processes that are left to the parent, and delete the cgroup."""
    for pid in (group / "cgroup.procs").read_text().split() if (group / "cgroup.procs").exists() else ():
        try:
            (parent / "cgroup.procs").write_text(pid)
        except ProcessLookupError:
            continue  # it has ended after the list was read
    group.rmdir()


def _refused(place: Path, error: OSError) -> NoCoreShares:
    return NoCoreShares(
        f"{place} cannot be written ({error.strerror}), so no process can be held to a share of a core: run "
        "this program as root, or where the cgroups of CPU are writable (v1: cpu.cfs_quota_us, v2: cpu.max)"
    )
