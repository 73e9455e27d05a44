"""OpenID Connect: tokens by the client credentials grant (RFC 6749, section 4.4) from a token endpoint."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote_plus, urlsplit

from topics.errors import TokenError, TokenRefusedError
from topics.http_answers import LargeBodyError, SlowBodyError, bounded_body, innermost
from topics.tokens.providers import SUBJECT_CLAIM
from topics.tokens.token import MOST_BYTES, SUBJECT, Token, read_token

if TYPE_CHECKING:
    from requests import Response

logger = logging.getLogger(__name__)

URL: Final = "sasl.oauthbearer.token.endpoint.url"
CLIENT: Final = "sasl.oauthbearer.client.id"
SECRET: Final = "sasl.oauthbearer.client.secret"  # noqa: S105 - the name of a property
SCOPE: Final = "sasl.oauthbearer.scope"
ENCODE: Final = "sasl.oauthbearer.header.urlencode"
AUTHORITIES: Final = "https.ca.location"

CONNECT_S: Final = 5.0
READ_S: Final = 5.0  # between two pieces of an answer
ANSWER_S: Final = 15.0  # for a whole answer
BUSY: Final = (408, 425, 429, 500, 502, 503, 504)
"""HTTP statuses of an endpoint that may answer the same request later."""
MOST_SHOWN: Final = 200  # characters of the endpoint's own reason

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class Oidc:
    """Tokens from the endpoint of an identity provider, for a client id and its secret."""

    required: ClassVar[tuple[str, ...]] = (URL, CLIENT, SECRET)
    optional: ClassVar[tuple[str, ...]] = (SCOPE, ENCODE, AUTHORITIES)

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Take the properties, which have passed `problems`."""
        self._url, self._client = properties[URL], properties[CLIENT]
        self._secret = properties[SECRET]
        self._scope = properties.get(SCOPE, "")
        self._subject = properties.get(SUBJECT_CLAIM, SUBJECT)
        self._encodes = properties.get(ENCODE, "false").lower() == "true"
        self._authorities = properties.get(AUTHORITIES)
        parts = urlsplit(self._url)
        if parts.scheme.lower() == "http" and parts.hostname not in _LOOPBACK:
            logger.warning("%s=%s: the client secret is sent in the clear; use https", URL, self._url)

    def __repr__(self) -> str:
        """Return the endpoint; the secret is never shown."""
        return f"<{type(self).__name__} {self._url}>"

    @classmethod
    def problems(cls, properties: Mapping[str, str]) -> Iterator[str]:
        """Yield a sentence for each wrong value."""
        yield from url_problems(properties[URL])
        if properties.get(ENCODE, "false").lower() not in ("true", "false"):
            yield f"{ENCODE}={properties[ENCODE]} must be true or false; correct it"
        authorities = properties.get(AUTHORITIES)
        if authorities is not None and not Path(authorities).exists():
            yield f"{AUTHORITIES}={authorities} must be a file or folder of certificates; correct the path"

    @property
    def place(self) -> str:
        """The endpoint."""
        return f"{URL}={self._url}"

    def fetch(self) -> Token:
        """Request a token. Raises TokenError if another request may succeed, TokenRefusedError if not."""
        from requests import RequestException, post
        from requests.auth import HTTPBasicAuth
        from urllib3.exceptions import HTTPError

        identity = self._client, self._secret
        if self._encodes:
            identity = quote_plus(self._client), quote_plus(self._secret)
        form = {"grant_type": "client_credentials"} | ({"scope": self._scope} if self._scope else {})
        try:
            with post(
                self._url,
                data=form,
                auth=HTTPBasicAuth(*(text.encode() for text in identity)),  # of texts it takes Latin-1 only
                headers={"Accept": "application/json"},
                verify=self._authorities or True,
                timeout=(CONNECT_S, READ_S),
                allow_redirects=False,  # the secret goes to the named endpoint, and to no other place
                stream=True,
            ) as response:
                return self._token(response.status_code, self._body(response))
        except (RequestException, HTTPError, OSError) as error:
            reason = innermost(error)
            remedy = f"; check it and {AUTHORITIES}" if "certificate" in reason.lower() else ""
            message = f"{self.place} does not answer ({reason}){remedy}"
            raise TokenError(message) from None  # the request in the chain holds the secret

    def _body(self, response: Response) -> bytes:
        try:
            return bounded_body(response, MOST_BYTES, ANSWER_S)
        except LargeBodyError as error:
            message = f"{self.place} {error}; correct the address"
            raise TokenRefusedError(message) from None
        except SlowBodyError as error:
            message = f"{self.place} {error}"
            raise TokenError(message) from None

    def _token(self, status: int, body: bytes) -> Token:
        answer = _json(body)
        if status == HTTPStatus.OK:
            value, kind = answer.get("access_token"), answer.get("token_type", "Bearer")
            if isinstance(value, str) and str(kind).lower() == "bearer":
                return self._read(value, _life(answer.get("expires_in")))
            message = f"{self.place} answers without a bearer token; is it the address of a token endpoint?"
            raise TokenRefusedError(message)
        words = [str(answer[name]) for name in ("error", "error_description") if answer.get(name)]
        reason = self._shown(": ".join(words)) or "no reason given"
        if status in BUSY:
            message = f"{self.place} is not ready: HTTP status {status} ({reason})"
            raise TokenError(message)
        message = (
            f"{self.place} refuses {CLIENT}={self._client}: HTTP status {status} ({reason}); correct the "
            f"address, {CLIENT}, {SECRET} or {SCOPE}"
        )
        raise TokenRefusedError(message)

    def _read(self, value: str, seconds: float | None) -> Token:
        try:
            return read_token(value, self.place, seconds, subject=self._subject)
        except TokenError as error:  # the endpoint would answer the same again
            raise TokenRefusedError(str(error)) from None

    def _shown(self, text: str) -> str:
        """Return a text of the endpoint in one short line, without the secret, which it may repeat."""
        for secret in (self._secret, quote_plus(self._secret)):
            text = text.replace(secret, "***")
        printable = "".join(letter if letter.isprintable() else " " for letter in text)
        return printable if len(printable) <= MOST_SHOWN else f"{printable[:MOST_SHOWN]}…"


def url_problems(url: str) -> Iterator[str]:
    """Yield the sentence for a value that is no address of an endpoint; it does not show a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        yield f"{URL} must be an address with a port from 1 to 65535; write it like https://login/token"
        return
    if parts.username is not None or parts.password is not None:
        yield f"{URL} must have no user and no password in it; set {CLIENT} and {SECRET} instead"
    elif parts.scheme.lower() not in ("https", "http") or not parts.hostname or parts.fragment or port == 0:
        yield f"{URL}={url} must be an https address; write it like https://login.example.com/oauth2/token"


def _life(seconds: Any) -> float | None:
    """Return `expires_in` as a number; some issuers write it as a text."""
    try:
        life = float(seconds) if not isinstance(seconds, bool | None) else math.nan
    except (TypeError, ValueError):
        return None
    return life if math.isfinite(life) else None


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}
