"""Memory limit: how much of the memory that its cgroup grants a worker uses; the kernel ends it at the limit.

Cgroups v1 and v2 are read; a limit of a cgroup above counts too. Pages of files on a disk, read once
(`inactive_file`) or often (`active_file`), do not count as used, because the kernel takes them back before it
ends a process. Files in memory (`shmem`: tmpfs) count.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

WARN: Final = 0.9
CALM: Final = 0.85
"""The share below which a limit that was near counts as far again: the two differ so that it does not
flicker.
"""

MIB: Final = 1 << 20
NO_LIMIT: Final = 1 << 60
"""Version 1 has no word for "no limit", but a number near 2**63."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes that the processes of a cgroup use, and its limit."""

    used: int
    limit: int

    @property
    def share(self) -> float:
        return self.used / self.limit


@dataclass(frozen=True, slots=True)
class _Files:
    """Names of a version's files."""

    limit: str
    used: str
    reclaimable: tuple[str, ...]  # fields of memory.stat


_VERSION_1: Final = _Files(
    "memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")
)
_VERSION_2: Final = _Files("memory.max", "memory.current", ("inactive_file", "active_file"))


class MemoryLimit:
    """The memory limit of this process's cgroup; without one, nothing is near it."""

    def __init__(self, mounts: Path = Path("/proc/mounts"), own: Path = Path("/proc/self/cgroup")) -> None:
        """`mounts`, `own`: the kernel's lists of mounted file systems, and of this process's cgroups."""
        self._mounts, self._own = mounts, own
        self._was_near = False

    def failure(self) -> str:
        """Return why the limit is near, with the remedy; empty: it is not near."""
        use = self.tightest()
        if use is None or use.share < (CALM if self._was_near else WARN):
            self._was_near = False
            return ""
        self._was_near = True
        return (
            f"the memory limit is near: {use.used / MIB:.0f} of {use.limit / MIB:.0f} MiB of this worker's "
            "cgroup are used, and at the limit the kernel ends the worker; set models.max.bytes (models "
            "beyond it wait in state.dir), or raise the limit"
        )

    def tightest(self) -> MemoryUse | None:
        """Return use and limit of the cgroup, its own or one above, of which most is used; None: no limit."""
        uses = list(self._uses())
        return max(uses, key=lambda use: use.share) if uses else None

    def smallest(self) -> int | None:
        """Return the smallest limit of its cgroup and of those above, in bytes; None: no limit."""
        return min((use.limit for use in self._uses()), default=None)

    def _uses(self) -> Iterator[MemoryUse]:
        for folder, root, files in self._folders():
            while True:
                use = _use_in(folder, files)
                if use is not None:
                    yield use
                if folder == root or root not in folder.parents:
                    break
                folder = folder.parent

    def _folders(self) -> Iterator[tuple[Path, Path, _Files]]:
        """Yield the folder of this process in each hierarchy with memory limits, and the hierarchy's root."""
        try:
            mounts = self._mounts.read_text(encoding="utf-8", errors="replace").splitlines()
            own = self._own.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:  # this is no Linux
            return
        for line in mounts:
            _, place, kind, options, *_ = line.split()
            if kind == "cgroup" and "memory" in options.split(","):
                yield _own_folder(Path(place), own, "memory"), Path(place), _VERSION_1
            elif kind == "cgroup2":
                yield _own_folder(Path(place), own, ""), Path(place), _VERSION_2


def process_memory() -> int:
    """Return the bytes of memory that this process can have: of its cgroup's limit, or of the machine."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = MemoryLimit().smallest()
    return machine if limit is None else min(machine, limit)


def _own_folder(root: Path, own: list[str], controller: str) -> Path:
    """Return the folder of this process; the root where a container hides it."""
    for line in own:
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            folder = root / path.lstrip("/")
            return folder if folder.is_dir() else root
    return root


def _use_in(folder: Path, files: _Files) -> MemoryUse | None:
    """Return use and limit of a cgroup; None if it has no limit, or vanishes meanwhile."""
    try:
        limit = (folder / files.limit).read_text(encoding="ascii").strip()
        if not limit.isdecimal() or not 0 < int(limit) < NO_LIMIT:
            return None
        used = int((folder / files.used).read_text(encoding="ascii"))
        fields = (line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines())
        reclaimable = sum(int(value) for name, value in fields if name in files.reclaimable)
    except (OSError, ValueError):
        return None
    return MemoryUse(max(used - reclaimable, 0), int(limit))
