"""Idioms per 1,000 words of docstrings, comments, pages and strings: a measure of plain English.

``python -m tests.english`` prints a table by folder; ``python -m tests.english --lines FOLDER`` prints each
sentence that a pattern matches, with its file and line. With ``--strings`` both read help texts, error texts
and other strings instead. CONTRIBUTING.md has the rules.
"""

from __future__ import annotations

import argparse
import ast
import io
import itertools
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]

_CALLERS = "for who|of who|who (?:asks|looks|reads|has|cannot|can|does|waits|writes|wants)"
_SPEECH = "says|say|said|told|tells|tell|knows|know|asks|asked|judges|judged"
_PRONOUNS = "that of|those of|these of|ones|another one|others|the one|the other|so many|as many"
_ADVERBS = (
    "anew|at hand|by itself|by themselves|of its own|of their own|besides|behind (?:it|that|this|the)|"
    "all the same|meanwhile|gone by|is gone|by way of|said of|is the matter|nobody|somebody|anybody"
)

PATTERNS: Final = {
    "a question word as the subject": r"(?:^|[.:;]\s+|\n\s*)(?:What|Whatever|Whoever|Who|Whichever)\b",
    "whoever, whatever, who asks": rf"\b(?:whoever|whatever|whichever|wherever|{_CALLERS})\b",
    "things that say, know, tell or ask": rf"\b(?:{_SPEECH})\b",
    "a fragment that begins with Of": r"(?:^|[.:;]\s+)Of\b",
    "that of, ones, others": rf"\b(?:{_PRONOUNS})\b",
    "anew, at hand, by itself, nobody": rf"\b(?:{_ADVERBS})\b",
}
"""The six kinds of idiom, each a regular expression that is tried on whole paragraphs."""

_COMPILED: Final = {name: re.compile(pattern, re.MULTILINE) for name, pattern in PATTERNS.items()}
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]*")
_DIRECTIVE: Final = re.compile(r"#\s*(?:noqa|type:|pragma|!|ruff|fmt)")


@dataclass(frozen=True, slots=True)
class Text:
    """A docstring, a comment over one or more lines, or a paragraph of a page."""

    path: Path
    line: int
    words: str


def texts(place: Path) -> Iterator[Text]:
    """Yield the English of a file, or of all Python files and pages below a folder, in the order of paths."""
    paths = [place] if place.is_file() else sorted(place.rglob("*"))
    for path in paths:
        if path.suffix == ".py" and "__pycache__" not in path.parts:
            yield from _docstrings(path)
            yield from _comments(path)
        elif path.suffix == ".md":
            yield from _paragraphs(path)


def _docstrings(path: Path) -> Iterator[Text]:
    """Yield docstrings of modules, classes and functions, and the strings that follow an assignment."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield Text(path, node.body[0].lineno, text)
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for before, after in itertools.pairwise(body):
            if (
                isinstance(before, ast.Assign | ast.AnnAssign)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                yield Text(path, after.lineno, after.value.value)


def strings(place: Path) -> Iterator[Text]:
    """Yield help texts, error texts and other sentences among the strings of a Python file, or of a folder.

    A sentence has three words at least. What an f-string inserts counts as one word, and so does code between
    backticks.
    """
    for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
        if path.suffix != ".py":
            continue
        tree = ast.parse(path.read_text())
        inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)} | {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in ast.walk(node)
            if part is not node
        }
        for node in ast.walk(tree):
            if id(node) in inner:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "value" for part in node.values)
                words = "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                words = node.value
            else:
                continue
            words = re.sub(r"`[^`]*`", "`code`", words)
            if len(_WORD.findall(words)) > 2 and " " in words:
                yield Text(path, node.lineno, words)


def _comments(path: Path) -> Iterator[Text]:
    """Yield comments; lines that follow on each other are one text."""
    first, last, joined = 0, -2, ""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string):
            continue
        words = re.sub(r"\s*#\s*(?:noqa|type:).*", "", re.sub(r"^#[:!]?\s*", "", token.string))
        line = token.start[0]
        if line == last + 1:
            joined += f" {words}"
        else:
            if joined:
                yield Text(path, first, joined)
            first, joined = line, words
        last = line
    if joined:
        yield Text(path, first, joined)


def _paragraphs(path: Path) -> Iterator[Text]:
    """Yield the paragraphs of a page, without blocks of code and what stands between backticks."""
    is_code, first, joined = False, 0, ""
    for number, line in enumerate([*path.read_text().splitlines(), ""], 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
            line = ""
        if is_code or line.startswith("    "):
            continue
        words = re.sub(r"`[^`]*`", "`code`", line).strip()
        if words and joined and not words.startswith(("|", "- ", "#")):
            joined += f" {words}"
            continue
        if joined:
            yield Text(path, first, joined)
        first, joined = number, words


@dataclass(slots=True)
class Count:
    """Words of a folder, and the idioms found in them."""

    words: int = 0
    idioms: int = 0

    @property
    def rate(self) -> float:
        """Idioms per 1,000 words."""
        return 1000 * self.idioms / max(self.words, 1)


def count(place: Path, source: Callable[[Path], Iterator[Text]] = texts) -> Count:
    """Count words and idioms of a file or folder; source: `texts` or `strings`."""
    total = Count()
    for text in source(place):
        total.words += len(_WORD.findall(text.words))
        total.idioms += sum(len(pattern.findall(text.words)) for pattern in _COMPILED.values())
    return total


def matches(place: Path, source: Callable[[Path], Iterator[Text]] = texts) -> Iterator[tuple[Text, str, str]]:
    """Yield each text, the kind of idiom and the words around it; source: `texts` or `strings`."""
    for text in source(place):
        for name, pattern in _COMPILED.items():
            for match in pattern.finditer(text.words):
                around = text.words[max(match.start() - 40, 0) : match.end() + 40]
                yield text, name, " ".join(around.split())


def main() -> None:
    """Print the table, or the lines of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", metavar="FOLDER")
    parser.add_argument(
        "--strings", action="store_true", help="Read help texts, error texts and other strings."
    )
    parser.add_argument(
        "places", nargs="*", default=["core", "topics", "streamapp", "benchmarks", "docs", "README.md"]
    )
    options = parser.parse_args()
    source = strings if options.strings else texts
    if options.lines:
        for text, name, around in matches(ROOT / options.lines, source):
            sys.stdout.write(f"{text.path.relative_to(ROOT)}:{text.line}: {name}: … {around} …\n")
        return
    for place in options.places:
        total = count(ROOT / place, source)
        sys.stdout.write(f"{total.rate:6.1f}  {total.idioms:6,} of {total.words:8,} words  {place}\n")


if __name__ == "__main__":
    main()
