"""The header of an ARFF file: `@relation`, `@attribute` lines, up to `@data`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from topics.errors import DatasetError
from topics.readers.arff.tokens import SEPARATORS, ArffLineError, cut, text_of
from topics.readers.delimited import NUMBER
from topics.readers.source import LineBlock

LONGEST_HEADER = 64 << 20

# A row may begin on the line of @data, as Weka allows.
_DATA = re.compile(rb"^[\x00-\x09\x0b-\x20,]*@data(?=[\x00-\x20,%'\"{}]|\Z)", re.IGNORECASE | re.MULTILINE)
_REST_OF_LINE = re.compile(rb"[\x00-\x09\x0b-\x20,]*(?:%[^\n]*)?(?:\n|\Z)")
_NUMERIC = ("numeric", "real", "integer")
_SHOWN = 60  # characters of a line in a message


Lines: TypeAlias = Iterator[tuple[int, list[str]]]
"""Number and tokens of each line of a header."""


@dataclass(frozen=True, slots=True)
class ArffAttribute:
    """One `@attribute` declaration."""

    name: str
    values: tuple[str, ...] | None  # None: not nominal
    refused: str | None = None  # "string", "date" or "relational": can only be left out
    line: int = 0
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class ArffHeader:
    """All attributes of a file, and the text after them in the same block."""

    attributes: tuple[ArffAttribute, ...]
    rest: LineBlock


def read_header(path: str, blocks: Iterator[LineBlock]) -> ArffHeader:
    """Consume blocks up to `@data`; raise DatasetError with the line that breaks a rule."""
    text = b""
    for block in blocks:
        text += block.text
        match = _DATA.search(text)
        if match:
            attributes = _attributes(path, text[: match.start()])
            remainder = _REST_OF_LINE.match(text, match.end())
            end = remainder.end() if remainder else match.end()
            return ArffHeader(attributes, LineBlock(text[end:], 1 + text.count(b"\n", 0, end)))
        if len(text) > LONGEST_HEADER:
            break
    _attributes(path, text)  # raises an error with the line where the rows begin
    message = "no line @data; an ARFF file has @relation, @attribute lines, @data, then its rows"
    raise DatasetError(message, path)


def _attributes(path: str, text: bytes) -> tuple[ArffAttribute, ...]:
    attributes = _declared(path, _lines(path, text))
    if not attributes:
        message = "no @attribute line before @data"
        raise DatasetError(message, path)
    return tuple(attributes)


def _lines(path: str, text: bytes) -> Lines:
    """Yield number and tokens of each line with tokens, except `@relation`, whose name is not used."""
    try:
        lines = text.decode().split("\n")
    except UnicodeDecodeError as failure:
        message = f"byte 0x{text[failure.start]:02x} is not UTF-8; convert the file to UTF-8"
        raise DatasetError(message, path, 1 + text.count(b"\n", 0, failure.start)) from None
    for number, line in enumerate(lines, 1):
        if line.lstrip(SEPARATORS)[: len("@relation")].lower() == "@relation":
            continue
        try:
            tokens = cut(line)
        except ArffLineError as failure:
            raise DatasetError(str(failure), path, number) from None
        if tokens:
            yield number, tokens


def _declared(path: str, lines: Lines, bag: str | None = None) -> list[ArffAttribute]:
    """Return the attributes of the next lines: all, or the members of a relational one up to `@end`."""
    attributes: list[ArffAttribute] = []
    names: set[str] = set()
    number: int | None = None
    for number, tokens in lines:
        keyword = tokens[0].lower()
        if keyword == "@end" and bag is not None:
            if [text_of(token).lower() for token in tokens[1:2]] == [bag.lower()]:
                return attributes
            message = f"{_shown(tokens)} must be '@end {bag}', where the attributes of {bag!r} end"
            raise DatasetError(message, path, number)
        if keyword != "@attribute":
            message = (
                f"{_shown(tokens)} must be @relation, @attribute NAME KIND, @data or a comment %; "
                f"rows stand below a line @data; delete other lines, such as @inputs and @outputs of KEEL"
            )
            raise DatasetError(message, path, number)
        attribute = _attribute(path, number, tokens, lines)
        if attribute.name in names:
            message = f"attribute {attribute.name!r} is declared twice; names must differ"
            raise DatasetError(message, path, number)
        names.add(attribute.name)
        attributes.append(attribute)
    if bag is not None:
        message = f"the attributes of the relational attribute {bag!r} must end with a line '@end {bag}'"
        raise DatasetError(message, path, number)
    return attributes


def _attribute(path: str, line: int, tokens: Sequence[str], lines: Lines) -> ArffAttribute:
    if len(tokens) < 2 or tokens[1] in "{}":
        message = "@attribute must be followed by a name and a kind"
        raise DatasetError(message, path, line)
    name = text_of(tokens[1])
    if tokens[2:3] == ["{"]:
        values, after = _values(path, line, name, tokens)
        return ArffAttribute(name, values, line=line, weight=_weight(path, line, name, after))
    kind = text_of(tokens[2]).lower() if len(tokens) > 2 else ""
    # Text after a kind, such as a range [0,10], has no meaning except for a weight; Weka skips it, too.
    after = tokens[3:]
    if kind in _NUMERIC:
        return ArffAttribute(name, None, line=line, weight=_weight(path, line, name, after))
    if kind == "date":
        after = after if after[:1] == ["{"] else after[1:]  # the text after the format
    elif kind == "relational":
        _declared(path, lines, name)
    elif kind != "string":
        message = (
            f"kind {_shown(tokens[2:])} of attribute {name!r} must be numeric, real, integer or {{value,…}}"
        )
        raise DatasetError(message, path, line)
    return ArffAttribute(name, None, kind, line, _weight(path, line, name, after))


def _values(path: str, line: int, name: str, tokens: Sequence[str]) -> tuple[tuple[str, ...], Sequence[str]]:
    """Return the values of a nominal attribute from `{a, 'b c', …}`, and the tokens after them."""
    end = tokens.index("}") if "}" in tokens else 0
    inside = tokens[3:end]
    if not end or "{" in inside:
        message = f"values of attribute {name!r} must be {{value, 'quoted value', …}} on one line"
        raise DatasetError(message, path, line)
    values = tuple(map(text_of, inside))
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        message = f"attribute {name!r} declares the value {twice!r} twice"
        raise DatasetError(message, path, line)
    return values, tokens[end + 1 :]


def _weight(path: str, line: int, name: str, tokens: Sequence[str]) -> float:
    """Return the weight of an attribute from the tokens after its kind, 1 if there is none."""
    if tokens[:1] != ["{"]:
        return 1.0
    if len(tokens) < 3 or tokens[2] != "}" or not NUMBER.fullmatch(text_of(tokens[1])):
        message = f"{_shown(tokens)} after attribute {name!r} must be its weight, a number such as {{2.0}}"
        raise DatasetError(message, path, line)
    return float(text_of(tokens[1]))


def _shown(tokens: Sequence[str]) -> str:
    return repr(" ".join(tokens)[:_SHOWN])
