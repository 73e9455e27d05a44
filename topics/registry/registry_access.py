"""Access to a schema registry: its addresses, and how a client signs in, in the terms of Confluent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from topics.tokens.token_source import TokenSource

URL: Final = "schema.registry.url"
BASIC_SOURCE: Final = "basic.auth.credentials.source"
USER_INFO: Final = "basic.auth.user.info"
BEARER_SOURCE: Final = "bearer.auth.credentials.source"
BEARER_TOKEN: Final = "bearer.auth.token"  # noqa: S105 - the name of a property
LOGICAL_CLUSTER: Final = "bearer.auth.logical.cluster"
IDENTITY_POOL: Final = "bearer.auth.identity.pool.id"
AUTHORITIES: Final = "schema.registry.ssl.ca.location"
CERTIFICATE: Final = "schema.registry.ssl.certificate.location"
KEY: Final = "schema.registry.ssl.key.location"

BASIC_SOURCES: Final = ("USER_INFO", "URL", "SASL_INHERIT")
BEARER_SOURCES: Final = ("STATIC_TOKEN", "SASL_OAUTHBEARER_INHERIT")


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """Everything that a client needs in order to reach a registry; its text shows no secret."""

    urls: tuple[str, ...]
    """Addresses of one registry, without user and password; the first that answers is used."""
    login: tuple[str, str] | None = field(default=None, repr=False)
    token: str | TokenSource | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    authorities: str | None = None
    certificate: tuple[str, str] | None = None
    """PEM files of the client's certificate and of its key."""


def registry_access(
    properties: Mapping[str, str],
    sasl_login: tuple[str, str] | None = None,
    sasl_token: TokenSource | None = None,
) -> RegistryAccess | None:
    """Return the access that properties without problems describe; None without an address.

    `sasl_login` and `sasl_token` sign in to the brokers; a registry may inherit them.
    """
    addresses = _addresses(properties)
    if not addresses:
        return None
    login, token = None, None
    source = properties.get(BASIC_SOURCE, "USER_INFO" if properties.get(USER_INFO) else "URL")
    if source == "USER_INFO":
        user, _, password = properties.get(USER_INFO, "").partition(":")
        login = user, password
    elif source == "SASL_INHERIT":
        login = sasl_login
    elif (user_info := _user_info(addresses[0])) is not None:
        login = user_info
    bearer = properties.get(BEARER_SOURCE, "STATIC_TOKEN" if properties.get(BEARER_TOKEN) else "")
    if bearer:
        token = properties.get(BEARER_TOKEN) if bearer == "STATIC_TOKEN" else sasl_token
    named = ((LOGICAL_CLUSTER, "target-sr-cluster"), (IDENTITY_POOL, "Confluent-Identity-Pool-Id"))
    certificate = properties.get(CERTIFICATE)
    return RegistryAccess(
        tuple(without_user(address) for address in addresses),
        login,
        token,
        {header: properties[name] for name, header in named if properties.get(name)},
        properties.get(AUTHORITIES),
        (certificate, properties.get(KEY) or certificate) if certificate else None,
    )


def access_problems(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each property that is wrong, or has no effect; none shows a secret."""
    addresses = _addresses(properties)
    if not addresses:
        for name in (BASIC_SOURCE, USER_INFO, BEARER_SOURCE, BEARER_TOKEN, AUTHORITIES, CERTIFICATE, KEY):
            if properties.get(name):
                yield f"{name} has no effect without {URL}; set the address, or leave it out"
        return
    yield from (sentence for address in addresses for sentence in _address_problems(address, properties[URL]))
    yield from _basic_problems(properties)
    yield from _bearer_problems(properties)
    for name in (AUTHORITIES, CERTIFICATE, KEY):
        if properties.get(name) and not Path(properties[name]).exists():
            yield f"{name}={properties[name]} must be a PEM file that exists; correct the path"
    if properties.get(KEY) and not properties.get(CERTIFICATE):
        yield f"{KEY} must have its certificate; set {CERTIFICATE}"


def _basic_problems(properties: Mapping[str, str]) -> Iterator[str]:
    source = properties.get(BASIC_SOURCE)
    if source and source not in BASIC_SOURCES:
        yield f"{BASIC_SOURCE}={source} must be one of {', '.join(BASIC_SOURCES)}; correct it"
    if source == "USER_INFO" and not properties.get(USER_INFO):
        yield f"{USER_INFO} must be set with {BASIC_SOURCE}=USER_INFO; set it to user:password"
    if properties.get(USER_INFO) and ":" not in properties[USER_INFO]:
        yield f"{USER_INFO} must be user:password with a colon; correct it"
    if properties.get(USER_INFO) and source not in (None, "", "USER_INFO"):
        yield f"{USER_INFO} has no effect with {BASIC_SOURCE}={source}; leave one of them out"
    if properties.get(USER_INFO) and any(_user_info(address) for address in _addresses(properties)):
        yield f"{URL} must have no user and no password in it if {USER_INFO} is set; leave one of them out"


def _bearer_problems(properties: Mapping[str, str]) -> Iterator[str]:
    source, token = properties.get(BEARER_SOURCE), properties.get(BEARER_TOKEN)
    if source and source not in BEARER_SOURCES:
        yield f"{BEARER_SOURCE}={source} must be one of {', '.join(BEARER_SOURCES)}; correct it"
    if source == "STATIC_TOKEN" and not token:
        yield f"{BEARER_TOKEN} must be set with {BEARER_SOURCE}=STATIC_TOKEN; set it"
    if token and not all("!" <= letter <= "~" for letter in token):
        yield f"{BEARER_TOKEN} must consist of visible characters of ASCII; correct it"
    if (source or token) and (properties.get(BASIC_SOURCE) or properties.get(USER_INFO)):
        yield f"{BEARER_SOURCE} and {BASIC_SOURCE} must not both be set; leave one of them out"


def without_user(address: str) -> str:
    """Return an address without user and password.

    >>> without_user("https://me:secret@registry:8081/base")
    'https://registry:8081/base'
    """
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")


def shown_addresses(text: str) -> str:
    """Return the value of `schema.registry.url` with users, passwords and queries masked, as far as they can
    be recognised in a value that may be wrong: a password may contain a comma, and the scheme may be missing.

    >>> shown_addresses("https://me:a,b@registry:8081,me:c@registry:8082")
    'https://***@registry:8082'
    """
    shown = []
    for address in re.split(r",(?=\s*https?://)", text):
        place, question_mark, _ = address.partition("?")
        head, at, rest = place.rpartition("@")
        scheme, has_scheme, _ = head.partition("://")
        masked = f"{scheme}://***@{rest}" if has_scheme else f"***@{rest}"
        shown.append((masked if at else place) + question_mark)
    return ",".join(shown)


def _addresses(properties: Mapping[str, str]) -> list[str]:
    return [part.strip() for part in properties.get(URL, "").split(",") if part.strip()]


def _user_info(address: str) -> tuple[str, str] | None:
    parts = urlsplit(address)
    return None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))


def _address_problems(address: str, text: str) -> Iterator[str]:
    try:
        parts = urlsplit(address)
        is_good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or parts.query or parts.fragment:
        yield (
            f"{URL}={shown_addresses(text)} must be http:// or https://, a host and perhaps a port from 1 "
            "to 65535 and a path; write it like https://registry:8081"
        )
