"""Sources: the files that a module depends on by its imports; they are part of the key of its cache."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path


def reached_from(path: Path, root: Path, packages: Collection[str]) -> list[Path]:
    """Return a file and all files of some packages that it imports, directly or indirectly, by path.

    root: the folder that contains the packages. An import anywhere in a file counts, whether it runs or not.
    """
    files, waiting = {path}, [path]
    while waiting:
        for name in _imported(waiting.pop(), root):
            if name.partition(".")[0] in packages:
                for file in _files(name, root) - files:
                    files.add(file)
                    waiting.append(file)
    return sorted(files)


def _imported(path: Path, root: Path) -> Iterator[str]:
    """Yield the names of the modules that a file imports, and some names that are no modules."""
    package = path.relative_to(root).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            name = ".".join([*above, *([node.module] if node.module else [])])
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)


def _files(name: str, root: Path) -> set[Path]:
    place = root.joinpath(*name.split("."))
    return {file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()}
