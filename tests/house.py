"""House: how large the code is and how it hangs together, counted; and the file map of docs/design.md.

``python -m tests.house`` writes the file map anew (a test holds that it is current) and prints the counts of
this state; ``python -m tests.house FOLDER`` prints those of another checkout.

- *room*: a file or folder directly in a place
- *arrow*: an import between two of its rooms
- *floors*: how many rooms lie on the longest way along arrows
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from streamapp.settings.tables import table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "design.md"
BEGIN, END = "<!-- file map: python -m tests.house -->\n", "<!-- end of file map -->\n"
PACKAGES = ("core", "topics", "streamapp")
PLACES = ("core", "core/learners", "topics", "streamapp", "streamapp/worker", "streamapp/worker/task")
MOST_PARAMETERS = 7


# The file map


def file_map() -> str:
    """Return a row for each folder and for each of its modules: its path and its description."""
    folders = sorted({path.parent for package in PACKAGES for path in sources(ROOT / package)})
    return table(("place", "what it is"), (row for folder in folders for row in _rows(folder)))


def _rows(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the row of a folder, in bold, and a row for each module in it."""
    yield f"**`{folder.relative_to(ROOT).as_posix()}/`**", f"**{_first_line(folder / '__init__.py')}**"
    for path in sorted(folder.glob("*.py")):
        if path.stem != "__init__":
            yield f"`{path.stem}`", _first_line(path).removesuffix(".")


def _first_line(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return text.split("\n\n")[0].replace("\n", " ").replace("``", "`")


# The counts


def sources(folder: Path) -> list[Path]:
    """Return the Python files below a folder."""
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def sizes(root: Path) -> Iterator[tuple[object, ...]]:
    """Yield a row for each package: files, lines, functions, parameters, comments."""
    for package in PACKAGES:
        texts = [path.read_text() for path in sources(root / package) if path.stem != "__init__"]
        lines = [text.count("\n") for text in texts]
        functions = [
            node
            for text in texts
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        bodies = [(node.end_lineno or 0) - node.lineno + 1 for node in functions]
        wide = [n for n in map(_parameters, functions) if n > MOST_PARAMETERS]
        comments = sum(line.lstrip().startswith("#") for text in texts for line in text.splitlines())
        yield (
            package,
            len(texts),
            f"{sum(lines):,}",
            _spread(lines),
            sum(n < 60 for n in lines),
            _spread(bodies),
            f"{len(wide)} (max {max(wide, default=0)})",
            f"{100 * comments / sum(lines):.1f}",
        )


def _spread(values: list[int]) -> str:
    ordered = sorted(values)
    return f"{statistics.median(ordered):.0f} / {ordered[int(0.9 * len(ordered))]} / {ordered[-1]}"


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = node.args
    return len([*given.posonlyargs, *given.args, *given.kwonlyargs])


def plan(root: Path) -> Iterator[tuple[object, ...]]:
    """Yield a row for each place: loose files, rooms, floors, arrows, circles."""
    for place in PLACES:
        folder = root / place
        arrows = {
            (a, b)
            for path in sources(folder)
            for target in _imported(path, root)
            if (a := _room(path, folder)) and (b := _room(target, folder)) and a != b
        }
        rooms = {room for path in sources(folder) if (room := _room(path, folder))}
        floors = _floors(rooms, arrows)
        loose = len(list(folder.glob("*.py")))
        yield place, loose, len(rooms), floors if floors or not rooms else "a circle", len(arrows)


def _room(path: Path, folder: Path) -> str:
    """Return the room of a place that a file is in; "": none of its."""
    if not path.is_relative_to(folder):
        return ""
    first = path.relative_to(folder).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def _imported(path: Path, root: Path) -> Iterator[Path]:
    """Yield the files of ours that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        names: Iterable[str] = ()
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            for place in (root.joinpath(*parts), root.joinpath(*parts[:-1])):
                path_of = (
                    place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
                )
                if parts[0] in PACKAGES and path_of.is_file():
                    yield path_of
                    break


def _floors(rooms: set[str], arrows: set[tuple[str, str]]) -> int:
    """Return the rooms on the longest way along arrows, 0 if there is a circle."""
    depth = dict.fromkeys(rooms, 1)
    for _ in rooms:
        before = dict(depth)
        for a, b in arrows:
            depth[a] = max(depth[a], depth[b] + 1)
        if depth == before:
            return max(depth.values())
    return 0


def main() -> None:
    """Write the file map, or count another checkout; print the counts."""
    root = Path(sys.argv[1]).resolve() if sys.argv[1:] else ROOT
    if root == ROOT:
        text = PAGE.read_text()
        before, rest = text.split(BEGIN)
        PAGE.write_text(before + BEGIN + "\n" + file_map() + "\n" + END + rest.split(END)[1])
    head = ("", "files", "lines", "lines of a file, median / p90 / max", "< 60 lines")
    functions = ("lines of a function", f"> {MOST_PARAMETERS} parameters", "comments per 100 lines")
    sys.stdout.write(table((*head, *functions), sizes(root)))
    sys.stdout.write("\n" + table(("", "loose files", "rooms", "floors", "arrows"), plan(root)))


if __name__ == "__main__":
    main()
