"""Token file: a token that another process keeps fresh, such as a projected token of Kubernetes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from topics.errors import TokenError
from topics.tokens.oidc import URL
from topics.tokens.providers import SUBJECT_CLAIM
from topics.tokens.token import MOST_BYTES, SUBJECT, Token, read_token


class TokenFile:
    """The token in a file, which is read again before it ends.

    The property is that of Kafka's own clients: `sasl.oauthbearer.token.endpoint.url=file:///path`.
    """

    required: ClassVar[tuple[str, ...]] = (URL,)
    optional: ClassVar[tuple[str, ...]] = ()

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Take the properties, which have passed `problems`; the file need not exist yet."""
        self._url = properties[URL]
        self._file = Path(unquote(urlsplit(self._url).path))
        self._subject = properties.get(SUBJECT_CLAIM, SUBJECT)

    @classmethod
    def problems(cls, properties: Mapping[str, str]) -> Iterator[str]:
        """Yield a sentence for each wrong value."""
        parts = urlsplit(properties[URL])
        if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            yield (
                f"{URL} must be the address of a file with sasl.oauthbearer.method=file; write it like "
                "file:///var/run/secrets/kafka/token"
            )

    @property
    def place(self) -> str:
        """The file."""
        return f"{URL}={self._url}"

    def fetch(self) -> Token:
        """Read the file. Raises TokenError: a later read may succeed."""
        try:
            with self._file.open(encoding="ascii") as file:
                value = file.read(MOST_BYTES + 2).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not ASCII"
            message = f"{self.place} must be a readable file with a token ({reason}); mount it there"
            raise TokenError(message) from None
        return read_token(value, self.place, now=time.time(), subject=self._subject)
