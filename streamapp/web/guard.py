"""Guard: what stands before every request and websocket: origin, session, headers; the sign-in page."""

from __future__ import annotations

import asyncio
import html
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamapp.web.clock import now_ms
from streamapp.web.users import SESSION_MS, Sessions, SignInLimit, Users

COOKIE: Final = "grove_session"
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
BODY_MAX: Final = 8192
# NiceGUI writes its page's script and styles into the page, and Vue compiles templates in the browser.
POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with "no-referrer" forms would have the origin "null"
}
_PAGE: Final = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>grove: sign in</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
body {{ font: 1.1rem sans-serif; max-width: 22rem; margin: 3rem auto; padding: 0 1rem; }}
input, button {{ font: inherit; width: 100%; padding: .6rem; margin: .3rem 0 1rem; box-sizing: border-box; }}
</style></head><body><main><h1>Sign in</h1><p role="alert">{said}</p><form method="post" action="/sign-in">
<label>Name <input name="name" autocomplete="username" required autofocus maxlength="100"></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button>Sign in</button></form></main></body></html>"""


@dataclass(frozen=True, slots=True)
class Entry:
    """Who may come in."""

    sessions: Sessions
    users: Users | None  # None: whoever reaches the loopback address
    nobody: str  # the annotator's name without users
    loopback: bool  # names of the host are those of this machine, and cookies need no TLS


class Guard:
    """An ASGI application around another; `scope["annotator"]` is who asks."""

    def __init__(self, app: ASGIApp, entry: Entry) -> None:
        self.app = app
        self._entry = entry
        self._limit = SignInLimit()
        self._checking = asyncio.Semaphore(2)  # a check takes 64 MB and a core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
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
            await self.app(scope, receive, with_headers)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await answer(scope, receive, with_headers)

    async def _answer(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the answer to what is not let through; None: it is."""
        said = self._foreign(Headers(scope=scope), scope)
        if said:
            return PlainTextResponse(said, 403)
        connection = HTTPConnection(scope)
        token = connection.cookies.get(COOKIE, "")
        users = self._entry.users
        if users is None:
            scope["annotator"] = self._entry.nobody
            scope["signed_in"] = _always
            return None
        path = scope["path"]
        if path == "/sign-in" and scope["type"] == "http":
            return await self._sign_in(users, Request(scope, receive))
        annotator = self._entry.sessions.annotator(token, now_ms())
        if annotator is None or not users.has(annotator):
            return RedirectResponse("/sign-in", 303)
        if path == "/sign-out" and scope.get("method") == "POST":
            self._entry.sessions.end(token)
            gone = RedirectResponse("/sign-in", 303)
            gone.delete_cookie(COOKIE)
            return gone
        scope["annotator"] = annotator
        scope["signed_in"] = lambda: (
            self._entry.sessions.annotator(token, now_ms()) is not None and users.has(annotator)
        )
        return None

    def _foreign(self, headers: Headers, scope: Scope) -> str:
        """Return what is wrong about where a request comes from; "": nothing.

        A page elsewhere can make a browser ask here, with the cookies of here, but it cannot leave out the
        origin of what writes: a POST or a websocket.
        """
        host = headers.get("host", "")
        if self._entry.loopback and urlsplit(f"//{host}").hostname not in LOOPBACK:
            return "this host name is not one of this machine"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return "this page is not one of ours"
        writes = scope["type"] == "websocket" or scope.get("method") not in ("GET", "HEAD")
        if writes and origin is None:
            return "a request that writes must say its origin"
        return ""

    async def _sign_in(self, users: Users, request: Request) -> Response:
        if request.method != "POST":
            return _page("")
        if int(request.headers.get("content-length") or BODY_MAX + 1) > BODY_MAX:
            return _page("This is too long.", 413)
        given = parse_qs((await request.body()).decode("utf-8", "replace"))
        name, password = given.get("name", [""])[0], given.get("password", [""])[0]
        address = request.client.host if request.client else ""
        if not self._limit.admits(name, address, now_ms()):
            return _page("Too many attempts; try again in a minute.", 429)
        async with self._checking:
            right = await asyncio.to_thread(users.check, name, password)
        if not right:
            return _page("Name or password is wrong.", 401)
        self._limit.succeeded(name, address)
        token = self._entry.sessions.begin(name, now_ms())
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


def _page(said: str, status: int = 200) -> Response:
    return HTMLResponse(_PAGE.format(said=html.escape(said)), status)


def _always() -> bool:
    return True
