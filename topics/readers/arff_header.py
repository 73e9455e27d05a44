"""The header of an ARFF file: `@relation`, `@attribute` lines, up to `@data`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from topics.errors import DatasetError
from topics.readers.source import LineBlock

LONGEST_HEADER = 64 << 20

_DATA = re.compile(rb"^[ \t]*@data[ \t]*(%[^\n]*)?\r?(\n|\Z)", re.IGNORECASE | re.MULTILINE)
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{'\"][^\s{{]*)\s*(.*)", re.IGNORECASE | re.DOTALL)
_VALUE = re.compile(rf"\s*({_QUOTED}|[^,'\"]*?)\s*(,|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_NUMERIC = re.compile(r"(numeric|real|integer)\b\s*(\[.*\]|\{.*\})?\s*", re.IGNORECASE)
_OTHER_KIND = re.compile(r"(string|date|relational)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ArffAttribute:
    """One `@attribute` line."""

    name: str
    values: tuple[str, ...] | None  # None: numeric
    refused: str | None = None  # "string", "date" or "relational": can only be left out
    line: int = 0


@dataclass(frozen=True, slots=True)
class ArffHeader:
    """All attributes of a file, and what follows them in the same block."""

    attributes: tuple[ArffAttribute, ...]
    rest: LineBlock


def read_header(path: str, blocks: Iterator[LineBlock]) -> ArffHeader:
    """Consume blocks up to the line `@data`."""
    text = b""
    for block in blocks:
        text += block.text
        match = _DATA.search(text)
        if match:
            end = match.end()
            lines = _decoded(path, text[: match.start()]).split("\n")
            rest = LineBlock(text[end:], 1 + text.count(b"\n", 0, end))
            return ArffHeader(tuple(_attributes(path, lines)), rest)
        if len(text) > LONGEST_HEADER:
            break
    message = "no line @data; an ARFF file has @relation, @attribute lines, @data, then its rows"
    raise DatasetError(message, path)


def _decoded(path: str, text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as failure:
        message = f"byte 0x{text[failure.start]:02x} is not UTF-8; convert the file to UTF-8"
        raise DatasetError(message, path, 1 + text.count(b"\n", 0, failure.start)) from None


def _attributes(path: str, lines: list[str]) -> Iterator[ArffAttribute]:
    """Yield the attributes of a header; anything else but comments and @relation is an error."""
    found = False
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if not line or line.startswith("%") or line.lower().startswith("@relation"):
            continue
        match = _ATTRIBUTE.fullmatch(line)
        if not match:
            message = f"{line[:60]!r} must be @relation, @attribute NAME KIND, @data or a comment %"
            raise DatasetError(message, path, number)
        found = True
        yield _attribute(path, number, unquoted(match.group(1)), match.group(2))
    if not found:
        message = "no @attribute line before @data"
        raise DatasetError(message, path)


def _attribute(path: str, line: int, name: str, kind: str) -> ArffAttribute:
    if kind.startswith("{"):
        return ArffAttribute(name, _values(path, line, name, kind), line=line)
    if _NUMERIC.fullmatch(_without_comment(kind)):
        return ArffAttribute(name, None, line=line)
    other = _OTHER_KIND.match(kind)
    if other:
        return ArffAttribute(name, None, other.group(1).lower(), line)
    message = f"kind {kind[:40]!r} of attribute {name!r} must be numeric, real, integer or {{value,…}}"
    raise DatasetError(message, path, line)


def _without_comment(kind: str) -> str:
    return kind.split("%")[0].rstrip()


def _values(path: str, line: int, name: str, kind: str) -> tuple[str, ...]:
    """Return the values of a nominal attribute from `{a, 'b c', …}`."""
    values: list[str] = []
    at, end = 1, kind.rfind("}")
    inside = kind[:end]
    while end > 0 and at <= end:
        match = _VALUE.match(inside, at)
        if not match or not match.group(1):
            break
        values.append(unquoted(match.group(1)))
        at = match.end()
        if match.group(2) != ",":
            break
    if end < 0 or at != end or not values:
        message = f"values of attribute {name!r} must be {{value, 'quoted value', …}} on one line"
        raise DatasetError(message, path, line)
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        message = f"attribute {name!r} declares the value {twice!r} twice"
        raise DatasetError(message, path, line)
    return tuple(values)


def unquoted(token: str) -> str:
    """Return a token without its quotes and with its escapes resolved."""
    if token[:1] in "'\"" and len(token) > 1:
        return _ESCAPE.sub(lambda match: _ESCAPES.get(match.group(1), match.group(1)), token[1:-1])
    return token
