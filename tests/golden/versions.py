"""Golden files in the order of their versions, which are the numbers in their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path


def versions(path: Path) -> tuple[int, ...]:
    """Return the versions in a file's name: (1, 10) of units-1-10.bin, which is newer than units-1-4.bin."""
    return tuple(int(number) for number in re.findall(r"(?<=-)\d+", path.stem))


def ascending(paths: Iterable[Path]) -> list[Path]:
    """Return paths with the newest versions last."""
    return sorted(paths, key=versions)
