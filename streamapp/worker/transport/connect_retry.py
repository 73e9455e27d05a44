# ruff: noqa: SLF001 - what is read of aiokafka is held by
# tests/unit/streamapp/worker/transport/test_connect_retry.py
"""Connection retry: aiokafka's clients wait for a broker that was reached before.

A worker looks at its topics before anything else, and ends if no broker answers. Then it loads its kernels
and opens aiokafka's clients, seconds later: if the broker restarts just then, aiokafka gives up at once.

If a broker answers and refuses aiokafka (a certificate, a password), the client does not wait for it, even if
the broker accepted librdkafka before.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any, Final

from aiokafka import errors
from aiokafka.conn import create_conn
from aiokafka.errors import KafkaConnectionError, KafkaError

from streamapp.errors import SettingsError

logger = logging.getLogger(__name__)

AGAIN_S: Final = 0.5

REFUSALS: Final = 3
"""Times in a row: a broker that is just starting may not have its users yet."""

_SASL: Final = (
    errors.AuthenticationFailedError,
    errors.AuthenticationMethodNotSupported,
    errors.IllegalSaslStateError,
    errors.SaslAuthenticationFailed,
    errors.UnsupportedSaslMechanismError,
)
_CUT_OFF: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)  # a broker that goes away

CREDENTIALS: Final = (
    "client_id",
    "request_timeout_ms",
    "ssl_context",
    "security_protocol",
    "sasl_mechanism",
    "sasl_plain_username",
    "sasl_plain_password",
    "sasl_kerberos_service_name",
    "sasl_kerberos_domain_name",
    "sasl_oauth_token_provider",
)


class NotLetInError(SettingsError):
    """The broker refuses our TLS or our credentials."""


def retry_connect(client: Any, stopping: Callable[[], bool], again_s: float = AGAIN_S) -> None:
    """Make aiokafka's client wait for its first broker, until the worker is to stop.

    NotLetInError when a broker answers and refuses the client.
    """
    bootstrap = client.bootstrap

    async def wait_for_broker() -> None:
        is_logged, refused = False, 0
        while True:
            try:
                await bootstrap()
            except KafkaConnectionError as error:
                if stopping():
                    raise
                reason = await refusal(client)
                refused = refused + 1 if reason else 0
                if refused == REFUSALS:
                    raise NotLetInError(_told(client, reason)) from None
                if not is_logged:
                    logger.warning("the broker has gone away, waiting for it: %s", reason or error)
                is_logged = True
                await asyncio.sleep(again_s)  # no event reports that a broker is back
            else:
                return

    client.bootstrap = wait_for_broker


async def refusal(client: Any) -> str:
    """Return why a broker refuses aiokafka's client; empty if no broker answers, or one accepts it.

    aiokafka itself reports only that the bootstrap failed.
    """
    credentials = {name: getattr(client, f"_{name}") for name in CREDENTIALS} if client.hosts else {}
    for host, port, _ in client.hosts:
        conn = None
        try:
            conn = await create_conn(host, port, **credentials)
        except _CUT_OFF:
            continue
        except (ssl.SSLError, *_SASL) as error:
            return f"{type(error).__name__}: {error}"
        except (OSError, KafkaError, TimeoutError):
            continue
        finally:
            if conn is not None:
                conn.close()
    return ""


def _told(client: Any, reason: str) -> str:
    servers = ",".join(f"{host}:{port}" for host, port, _ in client.hosts)
    return (
        f"security.protocol={client._security_protocol} must let both clients of a worker in at {servers}: "
        f"librdkafka was let in, aiokafka is not: {reason}; correct ssl.* and sasl.* (properties that only "
        "librdkafka has are not enough)"
    )
