"""Plain English: idioms per 1,000 words of docstrings, comments and pages stay below a limit."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests import english, same_syntax

ROOT = Path(__file__).parents[2]
LIMITS = dict.fromkeys(("core", "topics", "streamapp", "benchmarks", "docs", "README.md"), 3)
"""Idioms per 1,000 words, at most."""


@pytest.mark.parametrize("place", LIMITS)
def test_idioms_are_rare(place: str) -> None:
    total = english.count(ROOT / place)
    assert total.words > 500
    assert total.rate <= LIMITS[place], f"python -m tests.english --lines {place}"


@pytest.mark.parametrize("place", ["core", "topics", "streamapp", "benchmarks"])
def test_idioms_are_rare_in_help_texts_and_error_texts(place: str) -> None:
    total = english.count(ROOT / place, english.strings)
    assert total.words > 500
    assert total.rate <= LIMITS[place], f"python -m tests.english --strings --lines {place}"


def test_strings_with_sentences_are_counted_and_docstrings_are_not(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        'def run(name: str) -> None:\n    """Say what nobody knows of others."""\n'
        '    option(help="Of the new topics.")\n'
        '    raise ValueError(f"{name} must be that of the topic; say `--that of` "\n'
        '                     f"or {name!r}")\n'
        '    return "nobody"\n'
    )
    texts = sorted(text.words for text in english.strings(module))
    assert texts == ["Of the new topics.", "value must be that of the topic; say `code` or value"]
    assert english.count(module, english.strings).idioms == 3


def test_each_kind_of_idiom_is_counted(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""What is in no list librdkafka is asked."""\n'
        "x = 1  # Of a record: laid out anew\n"
        'y = 2\n"""That of those others."""\n'
        "z = 3  # noqa: E501\n"
    )
    total = english.count(module)
    assert (total.words, total.idioms) == (18, 5)
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nThe broker says no.\n\n```\nwhoever says\n```\n")
    assert english.count(page).idioms == 1


@pytest.mark.parametrize("place", ["core", "topics", "streamapp", "benchmarks"])
def test_no_docstring_ends_in_a_comma(place: str) -> None:
    docstrings = [
        (path, node)
        for path in sorted((ROOT / place).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert docstrings
    unfinished = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
        for path, node in docstrings
        if (ast.get_docstring(node) or "").endswith(",")
    ]
    assert unfinished == []


def test_comments_and_docstrings_are_no_syntax() -> None:
    before = 'def f():\n    """Say so."""\n    return 1  # one\n'
    after = 'def f():\n    """Return one."""\n    # The first number.\n    return 1\n'
    assert same_syntax.without_docstrings(before) == same_syntax.without_docstrings(after)
    assert same_syntax.without_docstrings(before) != same_syntax.without_docstrings(before.replace("1", "2"))
