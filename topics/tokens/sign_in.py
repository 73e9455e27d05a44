"""Sign-in: client properties with the process's source of tokens in place of the source's own properties."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

from topics.tokens.extensions import extension_problems, extensions_of
from topics.tokens.providers import METHOD, PREFIXES, provider_class, provider_problems
from topics.tokens.token_source import TokenSource

CALLBACK: Final = "oauth_cb"
"""The property of confluent-kafka's clients that holds the source; our other clients read it, too."""

MECHANISM: Final = "OAUTHBEARER"

_sources: Final[dict[frozenset[tuple[str, str]], TokenSource]] = {}
_making: Final = threading.Lock()


def signs_in_by_token(properties: Mapping[str, Any]) -> bool:
    """Whether the properties choose SASL/OAUTHBEARER."""
    protocol = str(properties.get("security.protocol", "")).upper()
    mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms"))
    return protocol.startswith("SASL") and mechanism == MECHANISM


def sign_in_problems(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each problem of properties that choose SASL/OAUTHBEARER; none shows a secret."""
    yield from provider_problems(properties)
    yield from extension_problems(properties)


def signed_in(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return client properties without the properties of a source, and with the source if it is needed.

    `properties` must have no problems. Equal ways to sign in share one source in a process.
    """
    own = {name: str(value) for name, value in properties.items() if name.startswith(PREFIXES)}
    others = {name: value for name, value in properties.items() if name not in own}
    if not signs_in_by_token(properties) or CALLBACK in properties:
        return others
    return others | {CALLBACK: _source_of(own, str(properties.get("client.id", "")))}


def source_in(properties: Mapping[str, Any]) -> TokenSource | None:
    """Return the source of tokens in client properties, if there is one."""
    source = properties.get(CALLBACK)
    return source if isinstance(source, TokenSource) else None


def wait_for_token(properties: Mapping[str, Any]) -> None:
    """Return once a client with these properties can sign in, at once if it needs no token.

    A client of confluent-kafka without a token ends after ten seconds and does not report the reason; this
    raises TokenError with it.
    """
    if (source := source_in(properties)) is not None:
        source.token()


def current_sources() -> list[TokenSource]:
    """Return the sources of this process."""
    with _making:
        return list(_sources.values())


def _source_of(own: Mapping[str, str], name: str) -> TokenSource:
    with _making:
        key = frozenset(own.items())
        if key not in _sources:
            provider = provider_class(own[METHOD])(own)
            _sources[key] = TokenSource(provider, extensions_of(own), f"{socket.gethostname()}/{name}")
        return _sources[key]
