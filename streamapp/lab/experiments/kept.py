"""Result cache of experiments: a file for each cell, with parameters, results and the code's version.

A result belongs to a cell and to the code that has run it. A file of other code is written again. A
damaged or edited file is refused, because it is not known what is lost with it.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from core.model.file import write_whole
from streamapp.errors import UsageError
from streamapp.lab.experiments.base import Row

SOURCES = (
    "core",
    "topics/readers",
    "streamapp/lab/datasets.py",
    "streamapp/lab/pool",
    "streamapp/lab/experiments",
)
"""Sources on which a result may depend, relative to the folder of the packages."""
FRAME = ("base.py", "chart.py", "conduct.py", "kept.py")
"""Files among them that run cells and report on them, but do not influence results."""


class ResultCache:
    """The finished cells of one experiment."""

    def __init__(self, folder: Path, code: str) -> None:
        """Store cells in a folder, which is created if it is missing; UsageError if that fails."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"--output {folder.parents[1]} must be a folder that can be written: {error.strerror}"
            raise UsageError(message) from error
        self.folder, self.code = folder, code
        self.outdated = 0
        """Number of files of other code that were found."""

    def find(self, cell: dict[str, Any]) -> Row | None:
        """Return parameters and results of a cell, None if this code has not run it.

        UsageError if there is a file that ``keep`` has not written.
        """
        path = self._path(cell)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeError) as error:
            raise _unusable(path) from error
        try:
            document = json.loads(text)
            results, code = document["results"], document.get("code")
            sealed = code is None or document["seal"] == _seal(cell, code, results)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unusable(path) from error
        if not (sealed and isinstance(results, dict) and results):
            raise _unusable(path)
        if code != self.code:
            self.outdated += 1
            return None
        return {**cell, **results}

    def keep(self, cell: dict[str, Any], results: dict[str, Any]) -> Row:
        """Write the file of a cell; return parameters and results as they will be read."""
        body = {"cell": cell, "code": self.code, "results": results, "seal": _seal(cell, self.code, results)}
        text = json.dumps(body, indent=1) + "\n"
        write_whole(self._path(cell), text.encode())
        return {**cell, **json.loads(text)["results"]}

    def _path(self, cell: dict[str, Any]) -> Path:
        text = json.dumps(cell, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


@functools.cache
def code_version() -> str:
    """Return the hash of the sources that results depend on."""
    home = Path(__file__).parents[3]
    digest = hashlib.sha256()
    for source in SOURCES:
        place = home / source
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            if path.parent != Path(__file__).parent or path.name not in FRAME:
                digest.update(f"{path.relative_to(home)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _seal(cell: dict[str, Any], code: str, results: Any) -> str:
    text = json.dumps([cell, code, results], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _unusable(path: Path) -> UsageError:
    return UsageError(f"{path} must hold the results of a cell; delete it, or run all again with --fresh")
