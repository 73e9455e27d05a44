"""Golden files in the order of their versions, which are the numbers in their names.

A release writes models in two state versions: in ALIKE_SINCE without new words in their spec, in
STATE_VERSION with them. Golden files of both are needed, and the specs of the second have words of `ADDED`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from core.state_version import ALIKE_SINCE, NEW_WORDS

WRITTEN: Final = (ALIKE_SINCE, *(version for version in sorted(NEW_WORDS) if version > ALIKE_SINCE))
"""State versions that this release writes, ascending."""

ADDED: Final[Mapping[int, dict[str, Any]]] = {
    10: {"calibration": "platt", "conformal": {"alpha": 0.1}, "drift": ["ddm", {"name": "input"}]},
}
"""By state version: parts of specs with its new words, for golden files of that version."""


def versions(path: Path) -> tuple[int, ...]:
    """Return the versions in a file's name: (1, 10) of units-1-10.bin, which is newer than units-1-4.bin."""
    return tuple(int(number) for number in re.findall(r"(?<=-)\d+", path.stem))


def extended(spec: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return the spec of golden files of a state version: with words that came with it, if any."""
    return {**spec, **ADDED.get(version, {})}


def ascending(paths: Iterable[Path]) -> list[Path]:
    """Return paths with the newest versions last."""
    return sorted(paths, key=versions)
