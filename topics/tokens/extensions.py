"""Extensions: the further names and values that a client sends with its token (RFC 7628, KIP-342)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from topics.tokens.providers import EXTENSIONS

_NAME = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x20-\x7e\t]*")


def extensions_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the extensions by name, in the order of `sasl.oauthbearer.extensions`, which has no problems."""
    return {name.strip(): value for name, _, value in _pairs(properties)}


def extension_problems(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for the first extension that a broker would not take."""
    for name, equals, value in _pairs(properties):
        is_name = _NAME.fullmatch(name.strip()) and name.strip().lower() != "auth"
        if not (equals and is_name and _VALUE.fullmatch(value)):
            yield (
                f"{EXTENSIONS}={properties[EXTENSIONS]!r} must be name=value pairs separated by commas, "
                "names of letters only and not 'auth', values of visible ASCII; write it like tenant=grove"
            )
            return


def _pairs(properties: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    text = properties.get(EXTENSIONS, "")
    for pair in text.split(",") if text.strip() else ():
        yield pair.partition("=")
