"""docs/glossary.md: what it names in the code exists, and each word is listed once."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text()
NAMED = re.findall(r"`((?:core|topics|streamapp)/[\w/]+\.py)(?::(\w+))?`", PAGE)


def top_level(path: Path) -> set[str]:
    """Return what a module defines by name."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[f"{path}:{name}" for path, name in NAMED])
def test_what_it_names_exists(path: str, name: str) -> None:
    assert (ROOT / path).is_file()
    assert not name or name in top_level(ROOT / path)


def test_each_word_is_listed_once() -> None:
    words = re.findall(r"^\| ([^|`]+?) \|", PAGE, re.MULTILINE)
    assert {word: n for word, n in Counter(words).items() if n > 1} == {"word": 5}
    assert len(words) > 100


def test_readme_and_design_lead_to_it() -> None:
    assert "(docs/glossary.md)" in (ROOT / "README.md").read_text()
    assert "(glossary.md)" in (ROOT / "docs" / "design.md").read_text()
