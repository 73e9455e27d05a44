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
_PAIR = rb"(?:qid|[0-9]+):(?:[^\s:,]+|[ \t]+[+-]?[0-9.][^\s:,]*)"
_PAIRS = rb"%b(?:[ \t]+%b)*" % (_PAIR, _PAIR)
_LABEL_AND_PAIRS = re.compile(rb"[ \t]*%b[ \t]+%b[ \t]*\r?" % (_LABEL, _PAIRS))
_LABEL_OR_PAIRS = re.compile(rb"[ \t]*(?:%b|%b)[ \t]*\r?" % (_LABEL, _PAIRS))
_WORDS = re.compile(rb"[^:,\t]+")  # a first line of names, or of the numbers of rows, attributes and labels


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
    return any(whole) and all(
        is_whole or _LABEL_OR_PAIRS.fullmatch(line) for line, is_whole in zip(lines, whole, strict=True)
    )
