"""Webhooks: a label tool reports an annotation when it is made, so that its label need not wait for a sweep.

The server is uvicorn's, the application Starlette's. It accepts connections itself, because uvicorn bounds
neither the time of a request nor the connections whose TLS handshake is not over (`open_connections.py`).
Complete requests are handled one at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address
from typing import Any, Final

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from streamapp.bridge import open_connections
from streamapp.bridge.hook_formats import HookFormat, LabelStudioHooks
from streamapp.bridge.hook_protocol import LENGTH, REFUSED_MAX, HookProtocol, tls_or_plain
from streamapp.bridge.open_connections import BODY_MAX, CONNECTIONS_MAX, Connection, OpenConnections
from topics.errors import TopicsError

logger = logging.getLogger(__name__)

HEADERS_MAX: Final = 100
HEAD_MAX: Final = 1 << 16  # bytes of all headers together
AGAIN_S: Final = 1.0  # seconds after a connection that could not be accepted
GRACE_S: Final = 3  # seconds for complete requests when the server ends
LENGTH_DIGITS: Final = 20

Take = Callable[[Mapping[str, Any], Iterable[Mapping[str, Any]]], int]


class Webhooks:
    """Listens for webhooks; each is answered with 200 when the broker has its label. Use as a context."""

    def __init__(
        self,
        address: tuple[str, int],
        secret: str,
        take: Take,
        *,
        tls: ssl.SSLContext | None = None,
        hooks: HookFormat | None = None,
    ) -> None:
        """Bind the address (OSError); secret: of the tool's webhooks, "" for none; take: `Bridge.taken`.

        hooks: the tool's form of webhooks, Label Studio's if None.
        """
        self._format = hooks or LabelStudioHooks()
        self._format.check_secret(secret)
        self._secret, self._take, self._tls = secret, take, tls
        self._listener = _listener(address)
        self.server_address: tuple[str, int] = self._listener.getsockname()[:2]
        self.connections = OpenConnections()
        self._turn = asyncio.Lock()  # held while a body is parsed: 9 MiB need much more memory then
        self._ended = threading.Event()
        self._ended.set()
        app = Starlette(routes=[Route("/{path:path}", self._hook, methods=["POST"])])
        config = uvicorn.Config(
            app,
            http=HookProtocol,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=HEAD_MAX,
            timeout_graceful_shutdown=GRACE_S,
        )
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # requests that are no HTTP are not logged
        self._server = _Server(config, self._accept, self.connections)

    def serve_forever(self, poll_interval: float = 0.5) -> None:
        """Serve until `shutdown`; poll_interval: seconds between two searches for requests that are late."""
        self._ended.clear()
        self._server.poll_interval = poll_interval
        try:
            self._server.run(sockets=[])
        finally:
            self._ended.set()

    def shutdown(self) -> None:
        """End `serve_forever`, and wait for its end."""
        self._server.should_exit = True
        self._ended.wait()

    def __enter__(self) -> Webhooks:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    # -- connections --------------------------------------------------------------------------------------

    async def _accept(self) -> None:
        """Accept connections, and make room for each."""
        loop = asyncio.get_running_loop()
        self._listener.setblocking(False)
        opening: set[asyncio.Task[None]] = set()
        while True:
            try:
                sock, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                logger.error("a connection for a webhook could not be accepted: %s", error)
                await asyncio.sleep(AGAIN_S)
                continue
            connection = self.connections.begin(sock)
            if connection is None:
                sock.close()
                continue
            task = loop.create_task(self._open(connection))
            opening.add(task)
            task.add_done_callback(opening.discard)

    async def _open(self, connection: Connection) -> None:
        protocol = HookProtocol(
            connection,
            self.connections,
            config=self._server.config,
            server_state=self._server.server_state,
            _loop=asyncio.get_running_loop(),
        )
        try:
            await tls_or_plain(protocol, connection, self._tls, open_connections.TIMEOUT_S)
        except OSError:  # the client has left, or speaks no TLS
            self.connections.ended(connection)
            connection.sock.close()

    # -- requests -----------------------------------------------------------------------------------------

    async def _hook(self, request: Request) -> Response:
        connection: Connection = request.scope["state"]["connection"]
        refusal = self._refusal(request)
        if refusal is not None:
            return _Refusal(*refusal)
        try:
            body = await self._body(request, connection)
        except ClientDisconnect:
            return _answer(400, "the client has left before the end of its request")
        async with self._turn:
            return _answer(*await run_in_threadpool(self._taken, dict(request.headers), body))

    def _refusal(self, request: Request) -> tuple[int, str] | None:
        """Return code and text of a refusal that needs no body."""
        pairs = request.headers.raw
        if len(pairs) > HEADERS_MAX or sum(len(name) + len(value) for name, value in pairs) > HEAD_MAX:
            return 431, f"a request must have at most {HEADERS_MAX} headers and {HEAD_MAX} bytes of them"
        if problem := self._format.refuses_head(self._secret, request.headers):
            return 401, problem
        if "Origin" in request.headers:
            return 403, "a label tool sends no header Origin: pages of browsers send no webhooks"
        length = request.headers.get("Content-Length", "")
        is_number = length.isascii() and length.isdigit() and len(length) < LENGTH_DIGITS
        if not is_number or int(length) > BODY_MAX:
            return 413, LENGTH
        return None

    async def _body(self, request: Request, connection: Connection) -> bytes:
        """Return the body; ClientDisconnect: the client left, or was ended to make room."""
        parts: list[bytes] = []
        count, length = 0, int(request.headers["Content-Length"])
        async for part in request.stream():
            parts.append(part)
            count += len(part)
            if not self.connections.came(connection, count, is_whole=count == length):
                raise ClientDisconnect
        return b"".join(parts)

    def _taken(self, headers: Mapping[str, str], data: bytes) -> tuple[int, str]:
        """Send the labels of a body; return code and text of the answer."""
        if problem := self._format.refuses_body(self._secret, headers, data):
            return 401, problem
        try:
            body = orjson.loads(data)
        except orjson.JSONDecodeError:
            return 400, "the body must be JSON"
        parts = self._format.parts(body) if isinstance(body, dict) else None
        if parts is None:
            return 200, "nothing to do"  # a webhook of another action; the tool must not see an error
        try:
            n = self._take(*parts)
        except TopicsError as error:
            logger.warning("a webhook's label is not sent, the next sweep will: %s", error)
            return 503, "the label is not sent yet"
        except Exception as error:  # the next webhook may be good
            logger.exception("a webhook ended with %s", type(error).__name__)
            return 500, "the label is not sent"
        return 200, f"{n} labels sent"


class _Server(uvicorn.Server):  # type: ignore[misc] # its types are not looked at
    """A server that gets its connections from `accept`, and ends those that are late."""

    poll_interval = 0.5

    def __init__(
        self, config: uvicorn.Config, accept: Callable[[], Any], connections: OpenConnections
    ) -> None:
        super().__init__(config)
        self._accept, self._connections = accept, connections
        self._tasks: list[asyncio.Task[None]] = []

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(work) for work in (self._accept(), self._end_late())]

    async def shutdown(self, sockets: Any = None) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._connections.end_incomplete()
        await super().shutdown(sockets)

    async def _end_late(self) -> None:
        while True:
            await asyncio.sleep(self.poll_interval)
            self._connections.end_late()


class _Refusal(Response):  # type: ignore[misc] # its types are not looked at
    """An answer before the body was read; the body is read away, or the client would lose the answer."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(
            json.dumps({"detail": text}), code, {"Connection": "close"}, media_type="application/json"
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG002 - as ASGI calls it
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        unread, more = REFUSED_MAX, True
        while more and unread > 0:
            message = await receive()
            unread -= len(message.get("body", b""))
            more = message.get("more_body", False)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _answer(code: int, text: str) -> Response:
    body = json.dumps({"detail": text})
    return Response(body, code, {"Connection": "close"}, media_type="application/json")


def _listener(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET
    with contextlib.suppress(ValueError):
        family = socket.AF_INET6 if ip_address(address[0]).version == 6 else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2 * CONNECTIONS_MAX)
    except OSError:
        listener.close()
        raise
    return listener
