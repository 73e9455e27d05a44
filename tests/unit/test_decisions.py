"""docs/decisions.md has a row for each number in brackets, so that a reader of the code can resolve it."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests import house

PAGE = house.ROOT / "docs" / "decisions.md"
NUMBER = re.compile(r"\[(D[1-9][0-9]?(?:, D[1-9][0-9]?)*)\]")
OUTSIDE = "ALGO" + "RITHMS"
"""A text that is not in the repository; papers, sections and decisions are named instead."""


def texts() -> Iterator[Path]:
    """Yield the sources of product, tests and benchmarks, and the pages, but for the page of decisions."""
    for place in (*house.PACKAGES, "tests", "benchmarks", "docs"):
        for pattern in ("*.py", "*.java", "*.md"):
            yield from (path for path in (house.ROOT / place).rglob(pattern) if path != PAGE)
    yield from house.ROOT.glob("*.md")


def rows() -> list[list[str]]:
    """Return the cells of the rows of the page whose first cell is a number."""
    lines = [line for line in PAGE.read_text().splitlines() if re.match(r"\| D[0-9]", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_decision_that_a_text_names_has_its_row() -> None:
    numbers = {row[0] for row in rows()}
    named = {
        number: path.relative_to(house.ROOT).as_posix()
        for path in texts()
        for match in NUMBER.finditer(path.read_text())
        for number in match[1].split(", ")
    }
    assert len(named) > 50
    assert {number: path for number, path in named.items() if number not in numbers} == {}


def test_a_row_has_one_number_one_sentence_and_a_source() -> None:
    table = rows()
    assert len({row[0] for row in table}) == len(table)
    for number, decision, source in table:
        assert decision.endswith("."), number
        assert source, number


def test_no_text_refers_to_a_text_that_the_repository_lacks() -> None:
    assert [path.as_posix() for path in texts() if OUTSIDE in path.read_text()] == []
