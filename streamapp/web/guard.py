"""Guard: checks of every request and websocket: origin, session, role, rate; and the sign-in page."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamapp.web.audit_log import AuditLog
from streamapp.web.clock import now_ms
from streamapp.web.layout.navigation import may_see
from streamapp.web.layout.style_sheet import ASSETS, STYLE_SHEET
from streamapp.web.proxy import Proxy
from streamapp.web.rate_limit import RateLimit
from streamapp.web.users import OPERATOR, ROLES, SESSION_MS, Role, Sessions, SignInLimit, Users

COOKIE: Final = "grove_session"
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
BODY_MAX: Final = 8192
HEALTH: Final = "/healthz"
"""Path that answers probes of containers, without a session: the process serves and its threads run."""
PARTS: Final = ("/_nicegui", ASSETS)
"""Paths below which scripts and styles of pages lie."""
REQUESTS_PER_S, REQUESTS_BURST = 50.0, 1000  # per user; a page loads about 40 files
MESSAGES_PER_S, MESSAGES_BURST = 50.0, 500  # per websocket: each message is a key, a click, or a heartbeat
# NiceGUI writes its script and styles into the page, and Vue compiles templates in the browser.
POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with "no-referrer", forms would have the origin "null"
}
_PAGE: Final = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>grove: sign in</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="{style}">
</head><body class="grove-sign-in"><main class="grove-tile"><h1>Sign in</h1><p role="alert">{said}</p>
<form method="post" action="/sign-in">
<label>Name <input name="name" autocomplete="username" required autofocus maxlength="100"></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button>Sign in</button></form></main></body></html>"""


@dataclass(frozen=True, slots=True)
class Entry:
    """Rules of access: which users may sign in, and how."""

    sessions: Sessions
    users: Users | None  # None: every caller of the loopback address may come in
    nobody: str  # the annotator's name without users
    loopback: bool  # only host names of this machine are accepted, and cookies need no TLS
    audit: AuditLog
    proxy: Proxy | None = None  # a proxy that authenticates users instead of a password file
    alias: Callable[[str], str] = str  # name of a user → the name that pages and topics have


@dataclass(frozen=True, slots=True)
class _Who:
    """The user of a request; `still` returns False once they are no longer signed in."""

    name: str
    role: Role
    still: Callable[[], bool]
    token: str = ""


class Guard:
    """An ASGI application around another one; it adds the user ("annotator") and their role to the scope."""

    def __init__(self, app: ASGIApp, entry: Entry) -> None:
        self.app = app
        self._entry = entry
        self._limit = SignInLimit()
        self._rate = RateLimit(REQUESTS_PER_S, REQUESTS_BURST)
        self._checking = asyncio.Semaphore(2)  # a check takes 64 MB and a core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        answer = await self._answer(scope, receive)
        if answer is None:
            if scope["type"] == "websocket":
                receive = _watched(receive, scope["signed_in"])
            await self.app(scope, receive, with_headers)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await answer(scope, receive, with_headers)

    async def _answer(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the answer to a request that is refused; None: the request may pass."""
        refusal = self._foreign(Headers(scope=scope), scope)
        if refusal:
            return PlainTextResponse(refusal, 403)
        if scope["path"] == HEALTH and scope["type"] == "http":
            return JSONResponse({"status": "ok"})
        who = self._known(scope)
        address = scope["client"][0] if scope.get("client") else ""
        if not self._rate.admits(f"user {who.name}" if who else f"address {address}", now_ms()):
            return PlainTextResponse("too many requests; wait a moment", 429)
        path = scope["path"]
        if self._entry.users is not None and path == "/sign-in" and scope["type"] == "http":
            return await self._sign_in(self._entry.users, Request(scope, receive))
        if who is None and _is_public(scope):
            return None
        if who is None:
            if self._entry.proxy is not None:
                return PlainTextResponse("the proxy has not sent the name of the user", 403)
            return RedirectResponse("/sign-in", 303)
        if path == "/sign-out" and scope.get("method") == "POST" and self._entry.users is not None:
            return await self._sign_out(who)
        for_all = path == "/favicon.ico" or path.startswith(PARTS)
        if not (for_all or may_see(who.role, path)):
            return PlainTextResponse(f"this page is for {_roles(path)}", 403)
        name = self._entry.alias(who.name)
        scope["annotator"], scope["role"], scope["signed_in"] = name, who.role, who.still
        return None

    def _known(self, scope: Scope) -> _Who | None:
        """Return the user of a request; None: they are not signed in."""
        entry = self._entry
        if entry.proxy is not None:
            address = scope["client"][0] if scope.get("client") else ""
            named = entry.proxy.user(Headers(scope=scope), address)
            return None if named is None else _Who(*named, _always)
        users = entry.users
        if users is None:
            return _Who(entry.nobody, OPERATOR, _always)
        token = HTTPConnection(scope).cookies.get(COOKIE, "")
        name = entry.sessions.annotator(token, now_ms())
        role = None if name is None else users.role(name)
        if name is None or role is None or users.proof(name) != entry.sessions.proof(token):
            return None

        def still() -> bool:
            is_in = entry.sessions.annotator(token, now_ms()) is not None and users.role(name) == role
            return is_in and users.proof(name) == entry.sessions.proof(token)

        return _Who(name, role, still, token)

    async def _sign_out(self, who: _Who) -> Response:
        await asyncio.to_thread(self._entry.sessions.end, who.token)
        await asyncio.to_thread(self._entry.audit.note, self._entry.alias(who.name), "sign-out", now_ms())
        gone = RedirectResponse("/sign-in", 303)
        gone.delete_cookie(COOKIE)
        return gone

    def _foreign(self, headers: Headers, scope: Scope) -> str:
        """Return what is wrong with the origin of a request; "": nothing.

        A page of another site can make a browser send requests here with the cookies of this site, but it
        cannot leave out the `Origin` header of a POST or a websocket.
        """
        host = headers.get("host", "")
        if len(headers.getlist("host")) > 1 or len(headers.getlist("origin")) > 1:
            return "a request must have one host and one origin"
        if self._entry.loopback and _split(f"//{host}").hostname not in LOOPBACK:
            return "this host name is not one of this machine"
        origin = headers.get("origin")
        if origin is not None and _split(origin).netloc not in {host} - {""}:
            return "this page is not one of ours"
        writes = scope["type"] == "websocket" or scope.get("method") not in ("GET", "HEAD")
        if writes and origin is None:
            return "a request that writes must have the header Origin"
        return ""

    async def _sign_in(self, users: Users, request: Request) -> Response:
        if request.method != "POST":
            return _page("")
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 10 and int(length) <= BODY_MAX):
            return _page("This is too long.", 413)
        body = await _body(request)
        if body is None:
            return _page("This is too long.", 413)
        form = parse_qs(body.decode("utf-8", "replace"))
        name, password = form.get("name", [""])[0], form.get("password", [""])[0]
        address = request.client.host if request.client else ""
        if not self._limit.admits(name, address, now_ms()):
            return _page("Too many attempts; try again in a minute.", 429)
        async with self._checking:
            right = await asyncio.to_thread(users.check, name, password)
        if not right:
            return _page("Name or password is wrong.", 401)
        self._limit.succeeded(name, address)
        before = request.cookies.get(COOKIE)
        if before is not None:
            await asyncio.to_thread(self._entry.sessions.end, before)
        token = await asyncio.to_thread(self._entry.sessions.begin, name, now_ms(), users.proof(name))
        await asyncio.to_thread(self._entry.audit.note, self._entry.alias(name), "sign-in", now_ms())
        let_in = RedirectResponse("/", 303)
        let_in.set_cookie(
            COOKIE,
            token,
            max_age=SESSION_MS // 1000,
            httponly=True,
            samesite="strict",
            secure=not self._entry.loopback,
        )
        return let_in


async def _body(request: Request) -> bytes | None:
    """Return a body of at most BODY_MAX bytes; None: it is longer, as a body in chunks may be."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > BODY_MAX:
            return None
    return body


def _watched(receive: Receive, still: Callable[[], bool]) -> Receive:
    """Return the messages of a websocket while they come at a person's pace and the person is signed in."""
    limit = RateLimit(MESSAGES_PER_S, MESSAGES_BURST)

    async def watched() -> Message:
        message = await receive()
        if message["type"] == "websocket.receive" and not (still() and limit.admits("", now_ms())):
            return {"type": "websocket.disconnect", "code": 1008}
        return message

    return watched


def _split(url: str) -> SplitResult:
    """Return the parts of an address; all are empty if it is not an address."""
    try:
        parts = urlsplit(url)
        parts.hostname  # noqa: B018 - it may be what cannot be read
    except ValueError:
        return urlsplit("")
    return parts


def _page(text: str, status: int = 200) -> Response:
    return HTMLResponse(_PAGE.format(said=html.escape(text), style=STYLE_SHEET), status)


def _is_public(scope: Scope) -> bool:
    """Return whether a request reads the style sheet, which the sign-in page has too."""
    reads = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
    return reads and scope["path"].startswith(f"{ASSETS}/")


def _roles(path: str) -> str:
    """Return the roles that may see a path, in words."""
    roles = [role for role in ROLES if may_see(role, path)]
    return " and ".join(f"{role}s" for role in roles)


def _always() -> bool:
    return True
