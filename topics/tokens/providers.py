"""Providers: the plug-ins that get tokens, by the value of `sasl.oauthbearer.method`.

A plug-in is an entry point of the group `streamgrove.tokens`. Its name is the method, and its object is a
class with the members of `Provider`.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Final, Protocol

from topics.tokens.token import Token

GROUP: Final = "streamgrove.tokens"
METHOD: Final = "sasl.oauthbearer.method"
EXTENSIONS: Final = "sasl.oauthbearer.extensions"
SUBJECT_CLAIM: Final = "sasl.oauthbearer.sub.claim.name"
OF_EVERY_METHOD: Final = (METHOD, EXTENSIONS, SUBJECT_CLAIM)
PREFIXES: Final = ("sasl.oauthbearer.", "https.ca.")
"""Properties with these prefixes belong to the source of tokens: no client gets them."""


class Provider(Protocol):
    """A way to get tokens; one thread at a time calls `fetch`."""

    required: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]]
    """Properties that the method takes, besides `OF_EVERY_METHOD`."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Take the properties, which have passed `problems`; nothing is requested yet."""

    @classmethod
    def problems(cls, properties: Mapping[str, str]) -> Iterator[str]:
        """Yield a sentence for each wrong value of the required and optional properties; never a secret."""

    @property
    def place(self) -> str:
        """The property and value that name the place of the tokens, for error texts."""

    def fetch(self) -> Token:
        """Return a new token; may wait for some seconds. Raises TokenError, TokenRefusedError."""


def methods() -> Mapping[str, EntryPoint]:
    """Return the installed methods by name, sorted."""
    return _methods()


@functools.cache
def _methods() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in sorted(entry_points(group=GROUP))}


def provider_class(method: str) -> Any:
    """Return the class of an installed method."""
    return methods()[method].load()


def provider_problems(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each property that is missing, superfluous or wrong for the chosen method."""
    method = properties.get(METHOD, "")
    if method not in methods():
        near = difflib.get_close_matches(method, methods(), 1, 0.6)
        hint = f"did you mean {near[0]}?" if near else "set GROVE_KAFKA_SASL_OAUTHBEARER_METHOD"
        yield (
            f"{METHOD}={method or '(none)'} must be one of {', '.join(methods())} with "
            f"sasl.mechanism=OAUTHBEARER; {hint}"
        )
        return
    try:
        chosen = provider_class(method)
    except ImportError as error:
        yield f"{METHOD}={method} cannot be loaded ({error}); install what the plug-in needs"
        return
    names = [*OF_EVERY_METHOD, *chosen.required, *chosen.optional]
    for name in properties:
        if name.startswith(PREFIXES) and name not in names:
            near = difflib.get_close_matches(name, names, 1, 0.8)
            hint = f"did you mean {near[0]}?" if near else "leave it out"
            yield f"{name} has no effect with {METHOD}={method}, which takes {', '.join(names[1:])}; {hint}"
    for name in chosen.required:
        if not properties.get(name):
            variable = f"GROVE_KAFKA_{name.replace('.', '_').upper()}"
            is_secret = name.endswith("secret")
            yield f"{name} must be set with {METHOD}={method}; set {variable}" + (
                "_FILE to a file that holds it" if is_secret else ""
            )
    if all(properties.get(name) for name in chosen.required):
        yield from chosen.problems(properties)
