# ruff: noqa: SLF001 - what is replaced of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Sign-in again: aiokafka's connections with tokens, kept alive beyond the end of their session (KIP-368).

A broker with `connections.max.reauth.ms` ends a session with the token, or sooner, and closes a connection
that is used after that. aiokafka itself does not sign in again. Here a connection does so, in place, while
other requests wait for a moment: between the two requests of a sign-in a broker takes no others.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from typing import Any, Final

from aiokafka import conn
from aiokafka.errors import KafkaConnectionError, KafkaError
from aiokafka.protocol.admin import SaslAuthenticateRequest, SaslHandShakeRequest

logger = logging.getLogger(__name__)

PART_OF_SESSION: Final = 0.8
"""A connection then signs in again: the source has a new token, and there is time for slow answers."""

LEAST_S: Final = 1.0  # a broker refuses a sign-in within a second of the one before

_OF_SIGN_IN: Final = (SaslHandShakeRequest, SaslAuthenticateRequest)
_first_sign_in: Final = conn.AIOKafkaConnection._do_sasl_handshake


def keep_signed_in() -> None:
    """Let connections that are opened from now on sign in again, if they sign in with tokens."""
    conn.AIOKafkaConnection._do_sasl_handshake = _sign_in


async def _sign_in(connection: Any) -> None:
    """Sign in, the first time or again, and plan the next time; other requests wait."""
    if connection._sasl_mechanism != "OAUTHBEARER":
        await _first_sign_in(connection)
        return
    send = type(connection).send.__get__(connection)
    loop, is_over = asyncio.get_running_loop(), asyncio.Event()
    sent_at, session_ms = loop.time(), 0

    async def send_in_turn(request: Any, expect_response: bool = True) -> Any:
        nonlocal sent_at, session_ms
        if not isinstance(request, _OF_SIGN_IN):
            await is_over.wait()
        sent_at = loop.time()  # the session begins at the broker: this loop may be late for the answer
        answer = await send(request, expect_response)
        if isinstance(request, SaslAuthenticateRequest):
            session_ms = getattr(answer, "session_lifetime_ms", 0)  # older brokers have none
        return answer

    connection.send = send_in_turn
    try:
        await _first_sign_in(connection)
    finally:
        del connection.send
        is_over.set()
    if session_ms > 0:
        again_at = sent_at + max(session_ms / 1000 * PART_OF_SESSION, LEAST_S)
        loop.call_at(again_at, _begin_again, weakref.ref(connection))


def _begin_again(reference: weakref.ref[Any]) -> None:
    connection = reference()
    if connection is not None and connection.connected():
        task = asyncio.get_running_loop().create_task(_again(connection))
        connection.signing_in_again = task  # the loop holds tasks weakly


async def _again(connection: Any) -> None:
    """Sign in again; if that fails, the broker closes the connection in time, and aiokafka opens another."""
    try:
        await _sign_in(connection)
    except KafkaConnectionError as error:
        # The session has ended before: the loop did not run, as that of a reader that is not in use.
        logger.debug("a connection to %s:%s has ended: %s", connection.host, connection.port, error)
    except (KafkaError, OSError, TimeoutError) as error:
        logger.warning(
            "a connection to %s:%s cannot sign in again: %s", connection.host, connection.port, error
        )
    finally:
        del connection.signing_in_again  # a cycle of references
