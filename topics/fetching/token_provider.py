"""Token provider: the process's source of tokens as aiokafka asks for it, for each connection."""

from __future__ import annotations

import asyncio

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError

from topics.errors import TokenError
from topics.fetching.sign_in_again import keep_signed_in
from topics.tokens.token_source import TokenSource


class Tokens(AbstractTokenProvider):  # type: ignore[misc] # aiokafka has no types
    """The `sasl_oauth_token_provider` of aiokafka's clients."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        keep_signed_in()

    async def token(self) -> str:
        """Return the current token; the wait for it is in a thread, so the event loop goes on.

        Raises KafkaConnectionError if there is none: aiokafka then connects again later.
        """
        try:
            token = await asyncio.to_thread(self._source.token)
        except TokenError as error:
            raise KafkaConnectionError(str(error)) from None
        return token.value

    def extensions(self) -> dict[str, str]:
        """Return what is sent with a token."""
        return self._source.extensions
