"""Token: the text that lets a client in, with its life and the principal in it."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from topics.errors import TokenError

UNKNOWN_LIFE_S: Final = 300.0
"""Life of a token that does not show its end: a new one is requested after some minutes."""

SUBJECT: Final = "sub"
PARTS: Final = 3  # of a JSON Web Token: header, claims, signature
MOST_BYTES: Final = 1 << 18  # a broker reads at most 512 KiB of a client that has not signed in
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")  # RFC 7628; a line end would end the message


@dataclass(frozen=True, slots=True)
class Token:
    """A token as its provider returns it."""

    value: str = field(repr=False)
    seconds: float
    """Life from the moment at which the request for it was sent."""
    principal: str = ""
    """The user, as far as the token shows one."""


def read_token(
    value: str, place: str, seconds: float | None = None, now: float | None = None, subject: str = SUBJECT
) -> Token:
    """Return a token with the life that is known of it; raise TokenError for a text that cannot be a token.

    `seconds` is the life by the answer of the issuer. `now` is the time in seconds since the epoch, for a
    token that was issued some time ago. Without both, the life is the time between the token's own `iat` and
    `exp`, so that the clock of this machine does not matter. `subject` is the claim that holds the principal.
    """
    if len(value) > MOST_BYTES or not _VISIBLE.fullmatch(value):
        message = (
            f"{place} must have a token of 1 to {MOST_BYTES} visible characters of ASCII, not a text of "
            f"{len(value)}; have one issued"
        )
        raise TokenError(message)
    claims = _claims(value)
    begins, ends = _number(claims.get("iat")), _number(claims.get("exp"))
    lives = [seconds]
    if ends is not None:
        lives.append(ends - now if now is not None else None if begins is None else ends - begins)
    life = min((life for life in lives if life is not None), default=UNKNOWN_LIFE_S)
    if life <= 0:
        message = f"{place} has a token that expired {abs(life):.0f} s ago; have a new one issued"
        raise TokenError(message)
    principal = claims.get(subject)
    return Token(value, life, principal if isinstance(principal, str) else "")


def _claims(value: str) -> Mapping[str, Any]:
    """Return the claims of a JSON Web Token, which the broker verifies; empty for any other token."""
    parts = value.split(".")
    if len(parts) != PARTS:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _number(claim: Any) -> float | None:
    is_number = isinstance(claim, int | float) and not isinstance(claim, bool)
    return float(claim) if is_number and math.isfinite(claim) else None
