"""Tokens of an ARFF line, cut as Java's StreamTokenizer cuts them for Weka's ArffLoader.

A token keeps its spelling in the file, quotes and escapes included: `'?'` is a value, `?` is missing.
"""

from __future__ import annotations

import re

BLANKS = "".join(map(chr, range(ord(" ") + 1)))
SEPARATORS = BLANKS + ","

_QUOTED = r"'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\""
_WORD = r"[^\x00-\x20,%'\"{}]+"
_TOKEN = re.compile(rf"[\x00-\x20,]*({_QUOTED}|%.*|[{{}}]|{_WORD}|['\"].*)", re.DOTALL)
_WHOLE_QUOTED = re.compile(_QUOTED, re.DOTALL)
_WHOLE_WORD = re.compile(_WORD)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SHOWN = 40  # characters of a line in a message


class ArffLineError(Exception):
    """A line that breaks a rule of ARFF; the caller adds file and number."""


def cut(line: str) -> list[str]:
    """Return the tokens of one line without its comment; [] for a blank line.

    Raises ArffLineError if a quote stays open.
    """
    # Without rstrip the pattern would try a long run of separators again from each of them.
    tokens: list[str] = _TOKEN.findall(line.rstrip(SEPARATORS))
    if not tokens:
        return tokens
    last = tokens[-1]
    if last[0] == "%":
        tokens.pop()
    elif last[0] in "'\"" and not _WHOLE_QUOTED.fullmatch(last):
        message = (
            f"a quote {last[0]} is opened and never closed: {last[:_SHOWN]!r}; close it on the same line, "
            f"and write \\{last[0]} for the character itself"
        )
        raise ArffLineError(message)
    return tokens


def text_of(token: str) -> str:
    """Return the text of a token: without its quotes, with its escapes resolved."""
    if token[0] not in "'\"":
        return token
    inside = token[1:-1]
    return _ESCAPE.sub(_unescaped, inside) if "\\" in inside else inside


def is_word(text: str) -> bool:
    """Return whether a text can stand in a line without quotes."""
    return text != "?" and _WHOLE_WORD.fullmatch(text) is not None


def _unescaped(match: re.Match[str]) -> str:
    escaped = match.group(1)
    if escaped[0] in "01234567":
        return chr(int(escaped, 8))
    return _ESCAPES.get(escaped, escaped)
