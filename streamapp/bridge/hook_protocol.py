"""Hook protocol: uvicorn's HTTP/1.1 for one webhook per connection, with answers that clients can read.

uvicorn closes a connection as soon as it has refused a request, so that a client that still sends loses the
answer; and it drops a request whose client has closed its sending side.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from streamapp.bridge.open_connections import BODY_MAX, Connection, OpenConnections

REFUSED_MAX: Final = 2 * BODY_MAX
"""Bytes of a refused request that are read away at most."""
JSON: Final = (b"content-type", b"application/json")
LENGTH: Final = f"Content-Length must be a number up to {BODY_MAX}"


class HookProtocol(H11Protocol):  # type: ignore[misc] # its types are not looked at
    """One connection; it is noted in `OpenConnections` until it is lost."""

    def __init__(self, connection: Connection, noted: OpenConnections, **uvicorn: Any) -> None:
        super().__init__(app_state={"connection": connection}, **uvicorn)
        self._connection, self._noted = connection, noted
        self._left: int | None = None  # bytes of a refused request that may still come; None: not refused

    def connection_lost(self, exc: Exception | None) -> None:
        self._noted.ended(self._connection)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._left is None:
            super().data_received(data)
            return
        self._left -= len(data)
        if self._left < 0:
            self.transport.close()

    def eof_received(self) -> bool:
        """Keep the connection for the answer, if the request is complete."""
        return self.cycle is not None and not self.cycle.more_body

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - as uvicorn calls it
        """Refuse bytes that are no HTTP request, and read on, so that the client gets the answer."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        code, text = _reason(sys.exc_info()[1])
        body = json.dumps({"detail": text}).encode()
        headers = [JSON, (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
        for event in (
            h11.Response(status_code=code, headers=headers),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event))
        self._left = REFUSED_MAX
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def shutdown(self) -> None:
        """End the connection, or let it have its answer first."""
        if self._left is not None:
            self.transport.close()
        else:
            super().shutdown()


def _reason(error: BaseException | None) -> tuple[int, str]:
    """Return code and text of the answer to bytes that h11 refuses."""
    if "Content-Length" in str(error):
        return 413, LENGTH
    code = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
    return code, f"this is no HTTP/1.1 request: {error}"


async def tls_or_plain(protocol: HookProtocol, connection: Connection, tls: Any, timeout_s: float) -> None:
    """Give an accepted connection to its protocol, after the TLS handshake if there is one."""
    loop = asyncio.get_running_loop()
    waits = {} if tls is None else {"ssl_handshake_timeout": timeout_s}
    await loop.connect_accepted_socket(lambda: protocol, connection.sock, ssl=tls, **waits)
