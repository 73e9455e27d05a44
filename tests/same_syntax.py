"""Whether two states of the tree differ in nothing but docstrings and comments.

``python -m tests.same_syntax COMMIT`` compares the Python files of the work tree with those of a commit and
prints the files whose syntax trees differ without docstrings; it exits with 1 if there are any.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("core", "topics", "streamapp", "benchmarks")


def without_docstrings(source: str) -> str:
    """Return the dump of a module's syntax tree, without positions and without strings that stand alone."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, [statement for statement in block if not _is_text(statement)])
    return ast.dump(tree)


def _is_text(statement: Any) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def changed(commit: str) -> Iterator[str]:
    """Yield the paths of files that differ in more than docstrings and comments, or are in one state only."""
    listed = _git("diff", "--name-only", "--no-renames", commit, "--", *PLACES).splitlines()
    for path in listed:
        if not path.endswith(".py"):
            continue
        try:
            before = _git("show", f"{commit}:{path}")
            after = (ROOT / path).read_text()
        except (subprocess.CalledProcessError, FileNotFoundError):
            yield path
            continue
        if without_docstrings(before) != without_docstrings(after):
            yield path


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Print the files that differ."""
    differing = list(changed(sys.argv[1]))
    for path in differing:
        sys.stdout.write(f"{path}\n")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
