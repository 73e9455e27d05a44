"""Sniffing: the format of a text file."""

from __future__ import annotations

import re
from typing import Literal

FileFormat = Literal["arff", "libsvm", "csv", "parquet", "arrow"]
FORMATS: tuple[FileFormat, ...] = ("arff", "libsvm", "csv", "parquet", "arrow")

LINES_LOOKED_AT = 200

_ARFF = re.compile(rb"^[ \t]*@(relation|attribute|data)\b", re.IGNORECASE | re.MULTILINE)
# Lines that are clearly LIBSVM but break its rules (`qid:3 1:2`, several labels, `1: 2`, no label) count as
# LIBSVM, so that its reader refuses them with a message about the rule.
_LABEL = rb"(?:[+-]?[0-9.]+(?:,[+-]?[0-9.]+)*,?|[^\s:,]+)"
_PAIR = rb"(?:qid|[0-9]+):(?:[^\s:,]+(?:,[0-9]*)?|[ \t]+[+-]?[0-9.][^\s:,]*)"
_PAIRS = rb"%b(?:[ \t]+%b)*" % (_PAIR, _PAIR)
_LABEL_AND_PAIRS = re.compile(rb"[ \t]*%b[ \t]+%b[ \t]*\r?" % (_LABEL, _PAIRS))
_LABEL_OR_PAIRS = re.compile(rb"[ \t]*(?:%b|%b)[ \t]*\r?" % (_LABEL, _PAIRS))
# Pairs between commas or semicolons; at least two with a fraction, which times such as 12:30 do not have.
_PAIRS_APART = re.compile(rb"[+-]?[0-9.]+(?:[ \t,;]+[0-9]+:[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?){2,}[ \t,;]*\r?")
_FRACTION = re.compile(rb":[+-]?[0-9]*\.[0-9]")
_WORDS = re.compile(rb"[^:,\t]+")  # a first line of names, or of the numbers of rows, attributes and labels


_JSON = re.compile(rb'\s*(?:\[\s*)?\{\s*(?:"(?:[^"\\]|\\.)*"\s*:|\})')
_MARKUP = re.compile(rb"\s*<(?:!doctype|html|\?xml|!--)", re.IGNORECASE)
_POINTER = re.compile(rb"version https://git-lfs")
_VOWPAL = re.compile(
    rb"[+-]?[0-9.]+(?:[ \t]+[^\s|]+)*[ \t]+\|\w*[ \t]+(?:\S+[ \t]+)*[^\s:|]+:[+-]?[0-9.]+[ \t\r]*\n"
)
_NO_TABLES = (
    (_JSON, "JSON; write it as CSV or Parquet, or add --format csv if it is a table"),
    (_MARKUP, "a page of HTML or XML; fetch the file itself, or write its table as CSV"),
    (_POINTER, "a pointer of Git LFS and not the file; fetch the file with git lfs pull"),
    (_VOWPAL, "input of Vowpal Wabbit; write it as LIBSVM or CSV, or add --format csv if it is a table"),
)


def other_format(text: bytes) -> str | None:
    """Return the format of a text that no reader reads, and the remedy; None for other texts."""
    return next((what for pattern, what in _NO_TABLES if pattern.match(text)), None)


def sniff_format(text: bytes) -> FileFormat:
    """Return the format of a text file that begins with `text`: by content, since file names may be wrong."""
    if _ARFF.search(text):
        return "arff"
    return "libsvm" if _is_libsvm(text) else "csv"


def _is_libsvm(text: bytes) -> bool:
    """Return whether the first lines are `label index:value …`, with at most one line of words above."""
    lines = [line.split(b"#")[0] for line in text.split(b"\n")[:LINES_LOOKED_AT]]
    lines = [line for line in lines if line.strip()]
    whole = [_LABEL_AND_PAIRS.fullmatch(line) is not None for line in lines]
    if lines and not whole[0] and _WORDS.fullmatch(lines[0]):
        lines, whole = lines[1:], whole[1:]
    if lines and all(_PAIRS_APART.fullmatch(line) and _FRACTION.search(line) for line in lines):
        return True
    return any(whole) and all(
        is_whole or _LABEL_OR_PAIRS.fullmatch(line) for line, is_whole in zip(lines, whole, strict=True)
    )
