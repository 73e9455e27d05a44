"""Source of tokens: one in a process for each way to sign in, for all clients and threads.

    provider ──fetch──> TokenSource ──> confluent-kafka (calls it as `oauth_cb`)
      (in its thread)        ├────────> aiokafka (topics/fetching/connection.py)
                             └────────> /readyz, metrics

A thread renews the token before it ends. Ends are reckoned by monotonic time from the request on: a clock of
this machine that is wrong, or set, does not matter.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from topics.errors import TokenError, TokenRefusedError
from topics.tokens.providers import Provider
from topics.tokens.renewal import renewal_s, retry_s
from topics.tokens.token import Token

logger = logging.getLogger(__name__)

FIRST_S: Final = 8.0
"""The longest wait for a token; a person waits at most ten seconds for "not there"."""
TELL_S: Final = 30.0  # between two lines about the same failure


@dataclass(frozen=True, slots=True)
class TokenStatus:
    """The state of a source, for health pages and metrics."""

    seconds_left: float | None
    """Life of the token, not above 0 once it has ended; None before the first token."""
    failure: str
    """Why the last request failed; empty if it has not."""

    @property
    def is_valid(self) -> bool:
        """Whether clients can sign in now."""
        return self.seconds_left is not None and self.seconds_left > 0

    def __str__(self) -> str:
        """Return the state in one line."""
        life = "no token yet" if self.seconds_left is None else f"valid for {self.seconds_left:.0f} s"
        if self.seconds_left is not None and not self.is_valid:
            life = f"ended {-self.seconds_left:.0f} s ago"
        return f"{life}; not renewed: {self.failure}" if self.failure else life


class TokenSource:
    """The current token, which a thread renews; every method may be called from any thread."""

    def __init__(self, provider: Provider, extensions: Mapping[str, str], name: str = "") -> None:
        """Request nothing yet: the first `token` does. `name` determines the jitter of renewals."""
        self._provider, self._name = provider, name
        self.extensions = dict(extensions)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._token: Token | None = None
        self._ends = 0.0
        self._failure: TokenError | None = None
        self._n_tokens = self._n_failures = 0
        self._told_at = float("-inf")

    def __repr__(self) -> str:
        """Return the place of the tokens; a token is never shown."""
        return f"<{type(self).__name__} {self._provider.place}>"

    def __call__(self, _config: str | None = None) -> tuple[str, float, str, dict[str, str]]:
        """Return token, end (seconds since the epoch), principal and extensions, as `oauth_cb` has to.

        A client refuses an end before its own time, so the end is reckoned from this machine's clock.
        """
        token, seconds_left = self.token_with_life()
        return token.value, time.time() + seconds_left, token.principal, self.extensions

    @property
    def place(self) -> str:
        """The property and value that name the place of the tokens."""
        return self._provider.place

    @property
    def principal(self) -> str:
        """The user in the current token; empty if it shows none, or before the first token."""
        return self._token.principal if self._token is not None else ""

    @property
    def status(self) -> TokenStatus:
        """The current state."""
        with self._changed:
            seconds_left = None if self._token is None else self._ends - time.monotonic()
            return TokenStatus(seconds_left, "" if self._failure is None else str(self._failure))

    def token(self, seconds: float = FIRST_S) -> Token:
        """Return a token that has not ended.

        Waits up to `seconds` for the provider. Raises TokenError, or TokenRefusedError as soon as it refuses.
        """
        return self.token_with_life(seconds)[0]

    def token_with_life(self, seconds: float = FIRST_S) -> tuple[Token, float]:
        """Return a token and the seconds until its end, as `token` does."""
        deadline = time.monotonic() + seconds
        with self._changed:
            self._begin()
            while True:
                now = time.monotonic()
                if self._token is not None and now < self._ends:
                    return self._token, self._ends - now
                if isinstance(self._failure, TokenRefusedError):
                    raise TokenRefusedError(str(self._failure))
                if now >= deadline or self._closed:
                    raise TokenError(str(self._failure or f"{self._provider.place} has not answered yet"))
                self._changed.wait(deadline - now)

    def close(self) -> None:
        """End the thread; a request that is under way ends first."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _begin(self) -> None:
        """Start the thread, again after a fork, in whose child it does not run."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._renew_until_closed, name="tokens", daemon=True)
            self._thread.start()

    def _renew_until_closed(self) -> None:
        pause = 0.0
        while True:
            next_at = time.monotonic() + pause
            with self._changed:
                while not self._closed and (seconds_left := next_at - time.monotonic()) > 0:
                    self._changed.wait(seconds_left)
                if self._closed:
                    return
            pause = self._renew()

    def _renew(self) -> float:
        """Request a token; return the seconds until the next request."""
        began = time.monotonic()
        try:
            token = self._provider.fetch()
        except TokenError as error:
            return self._failed(error)
        except Exception as error:
            logger.exception("the method of %s failed", self._provider.place)
            return self._failed(TokenError(f"{self._provider.place}: {type(error).__name__}"))
        with self._changed:
            if self._failure is not None:
                logger.info("%s has a token again", self._provider.place)
            self._token, self._ends, self._failure = token, began + token.seconds, None
            self._n_tokens, self._n_failures = self._n_tokens + 1, 0
            self._told_at = float("-inf")
            self._changed.notify_all()
            return renewal_s(token.seconds, self._name, self._n_tokens) - (time.monotonic() - began)

    def _failed(self, error: TokenError) -> float:
        with self._changed:
            is_new = str(error) != str(self._failure)
            self._failure, self._n_failures = error, self._n_failures + 1
            now = time.monotonic()
            seconds_left = self._ends - now if self._token is not None else 0.0
            # Before the first token, every client that needs one raises the error.
            if self._token is not None and (is_new or now - self._told_at >= TELL_S):
                self._told_at = now
                life = f"is valid for {seconds_left:.0f} s" if seconds_left > 0 else "has ended"
                logger.warning("%s; the token %s, and is requested again", error, life)
            self._changed.notify_all()
            return retry_s(self._n_failures, seconds_left, self._name)
