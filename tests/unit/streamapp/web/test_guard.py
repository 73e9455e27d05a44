"""Guard: who comes in, from which page, and what every answer carries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse

from streamapp.errors import UsageError
from streamapp.web.audit_log import AuditLog
from streamapp.web.clock import now_ms
from streamapp.web.guard import BODY_MAX, COOKIE, MESSAGES_BURST, REQUESTS_BURST, Entry, Guard
from streamapp.web.layout.style_sheet import STYLE_SHEET
from streamapp.web.proxy import Proxy
from streamapp.web.store import Store
from streamapp.web.users import ATTEMPTS, Sessions, Users, add_user

HERE = "http://localhost"
PASSWORD = "correct horse battery"


async def inner(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["annotator"].encode()})


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store(":memory:")
    yield store
    store.close()


@pytest.fixture
def users(tmp_path: Path) -> Users:
    add_user(tmp_path / "users.txt", "ann", PASSWORD)
    return Users(tmp_path / "users.txt")


def guarded(
    store: Store,
    users: Users | None = None,
    *,
    app: Any = inner,
    loopback: bool = True,
    proxy: Proxy | None = None,
) -> Guard:
    return Guard(app, Entry(Sessions(store), users, "web", loopback, AuditLog(store), proxy))


def asked(guard: Guard, *requests: tuple[str, str, dict[str, Any]], base: str = HERE) -> list[httpx.Response]:
    """The answers to requests of one browser."""

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(guard)
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return [await client.request(method, path, **more) for method, path, more in requests]

    return asyncio.run(ask())


def sign_in(password: str = PASSWORD, origin: str = HERE) -> tuple[str, str, dict[str, Any]]:
    return "POST", "/sign-in", {"data": {"name": "ann", "password": password}, "headers": {"origin": origin}}


def test_without_users_whoever_reaches_loopback_is_the_annotator(store: Store) -> None:
    (answer,) = asked(guarded(store), ("GET", "/", {}))
    assert (answer.status_code, answer.text) == (200, "web")
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("base", "headers", "method"),
    [
        ("http://evil.example", {}, "GET"),  # another name for this machine
        (HERE, {"origin": "http://evil.example"}, "GET"),
        (HERE, {"origin": "null"}, "POST"),
        (HERE, {}, "POST"),
    ],
)
def test_pages_elsewhere_are_refused(store: Store, base: str, headers: dict[str, str], method: str) -> None:
    guard = guarded(store)
    (answer,) = asked(guard, (method, "/", {"headers": headers}), base=base)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "localhost.", "", "[", "[::1"),
        *(
            "127.0.0.1@evil.example",
            "evil.example:8080",
            "localhost:8080@evil.example",
            "0x7f.1",
            "2130706433",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_other_host_names_are_refused_whatever_they_look_like(store: Store, host: str, kind: str) -> None:
    sent = of_scope(guarded(store), kind, (b"host", host.encode()), (b"origin", f"http://{host}".encode()))
    assert sent[0].get("status", sent[0].get("code")) in (403, 1008)


@pytest.mark.parametrize(
    "headers",
    [
        [(b"host", b"localhost"), (b"host", b"evil.example"), (b"origin", b"http://localhost")],
        [(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"origin", b"http://evil.example")],
        [(b"host", b"localhost"), (b"origin", b"http://[")],
        [(b"host", b"localhost"), (b"origin", b"http://localhost.evil.example")],
        [(b"host", b"localhost"), (b"origin", b"http://localhost:81")],
        [(b"host", b"localhost"), (b"origin", b"null")],
        [(b"host", b"localhost"), (b"origin", b"")],
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_an_origin_must_be_one_and_ours(store: Store, headers: list[tuple[bytes, bytes]], kind: str) -> None:
    sent = of_scope(guarded(store), kind, *headers)
    assert sent[0].get("status", sent[0].get("code")) in (403, 1008)


def of_scope(guard: Guard, kind: str, *headers: tuple[bytes, bytes]) -> list[Any]:
    """What is sent to a request that has these headers, as they are."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": f"{kind}.disconnect"}

    scope = {"type": kind, "path": "/", "method": "POST", "query_string": b"", "headers": list(headers)}
    asyncio.run(guard(scope, receive, send))
    return sent


def test_a_websocket_ends_with_the_session_that_opened_it(store: Store, users: Users, tmp_path: Path) -> None:
    got: list[str] = []

    async def socket(scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive())["type"] == "websocket.receive":
            got.append(message["text"])

    sessions, path = Sessions(store), tmp_path / "users.txt"
    guard = Guard(socket, Entry(sessions, users, "web", True, AuditLog(store)))
    endings: list[Callable[[str], object]] = [
        sessions.end,
        lambda _: add_user(path, "ann", PASSWORD, "operator"),
        lambda _: add_user(path, "ann", "another one of hers"),
        lambda _: path.write_text(path.read_text().replace("ann:", "bob:")),
    ]
    for ending in endings:
        add_user(path, "ann", PASSWORD)
        token = sessions.begin("ann", now_ms(), users.proof("ann"))
        said = iter(("first", "second", "third"))

        async def receive(said: Any = said, ending: Any = ending, token: str = token) -> Any:
            text = next(said)
            if text == "second":
                ending(token)
            return {"type": "websocket.receive", "text": text}

        async def send(message: Any) -> None:
            raise AssertionError(message)

        cookie = f"{COOKIE}={token}".encode()
        headers = [(b"host", b"localhost"), (b"origin", HERE.encode()), (b"cookie", cookie)]
        scope = {"type": "websocket", "path": "/", "headers": headers, "query_string": b""}
        asyncio.run(guard(scope, receive, send))
    assert got == ["first"] * len(endings)


def test_a_session_that_somebody_planted_is_not_that_of_who_signs_in(store: Store, users: Users) -> None:
    sessions = Sessions(store)
    guard = Guard(inner, Entry(sessions, users, "web", True, AuditLog(store)))
    planted = sessions.begin("ann", now_ms(), users.proof("ann"))
    method, way, given = sign_in()
    headers = {"origin": HERE, "cookie": f"{COOKIE}={planted}"}
    (right,) = asked(guard, (method, way, given | {"headers": headers}))
    assert right.status_code == 303
    assert planted not in right.headers["set-cookie"]
    assert sessions.annotator(planted, now_ms()) is None, "the one before is over"
    assert sessions.annotator(right.cookies[COOKIE], now_ms()) == "ann"


def test_another_password_ends_the_sessions_of_before(store: Store, users: Users, tmp_path: Path) -> None:
    guard = guarded(store, users)
    (before,) = asked(guard, sign_in())
    looks = ("GET", "/", {"headers": {"cookie": f"{COOKIE}={before.cookies[COOKIE]}"}})
    assert asked(guard, looks)[0].status_code == 200
    add_user(tmp_path / "users.txt", "ann", "another one of hers")
    assert asked(guard, looks)[0].status_code == 303
    assert asked(guarded(store, users), looks)[0].status_code == 303, "after a restart, too"


@pytest.mark.parametrize(("origin", "goes_on"), [(HERE, True), ("http://evil.example", False), (None, False)])
def test_a_websocket_must_come_from_a_page_of_ours(store: Store, origin: str | None, goes_on: bool) -> None:
    sent: list[dict[str, Any]] = []
    reached: list[str] = []

    async def socket(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["annotator"])

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    headers = [(b"host", b"localhost"), *([(b"origin", origin.encode())] if origin else [])]
    scope = {"type": "websocket", "path": "/", "headers": headers, "query_string": b""}
    asyncio.run(guarded(store, app=socket)(scope, receive, send))
    assert reached == (["web"] if goes_on else [])
    assert [message["type"] for message in sent] == ([] if goes_on else ["websocket.close"])


@pytest.mark.parametrize("loopback", [True, False])
def test_users_sign_in_and_out(store: Store, users: Users, loopback: bool) -> None:
    guard = guarded(store, users, loopback=loopback)
    base = HERE if loopback else "https://label.example"
    before, form, wrong, right, inside, out, after = asked(
        guard,
        ("GET", "/", {}),
        ("GET", "/sign-in", {}),
        sign_in("wrong password", base),
        sign_in(origin=base),
        ("GET", "/", {}),
        ("POST", "/sign-out", {"headers": {"origin": base}}),
        ("GET", "/", {}),
        base=base,
    )
    assert (before.status_code, before.headers["location"]) == (303, "/sign-in")
    assert form.status_code == 200
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    cookie = right.headers["set-cookie"].lower()
    assert cookie.startswith(COOKIE)
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert ("secure" in cookie) is not loopback
    assert inside.text == "ann"
    assert (out.status_code, after.status_code) == (303, 303)


def test_guessing_is_stopped(store: Store, users: Users) -> None:
    guard = guarded(store, users)
    tries = [sign_in("wrong password")] * ATTEMPTS
    answers = asked(guard, *tries, sign_in())
    assert [answer.status_code for answer in answers] == [401] * ATTEMPTS + [429]


def test_a_body_that_is_too_long_is_not_read(store: Store, users: Users) -> None:
    guard = guarded(store, users)
    assert asked(guard, sign_in("x" * 10_000))[0].status_code == 413


def test_a_body_that_is_longer_than_its_header_says_is_not_read_to_its_end(
    store: Store, users: Users
) -> None:
    """A body in chunks has no length, and some servers accept a length beside it."""
    parts = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal parts
        while parts < 1000:
            parts += 1
            yield bytes(BODY_MAX)

    async def sign_in_at_length() -> int:
        guard = guarded(store, users)
        sent: list[Any] = []
        source = body()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": await anext(source, b""), "more_body": parts < 1000}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"origin", HERE.encode()), (b"content-length", b"10")]
        scope = {"type": "http", "method": "POST", "path": "/sign-in", "headers": headers}
        await guard({**scope, "client": ("127.0.0.1", 1), "query_string": b""}, receive, send)
        return int(sent[0]["status"])

    assert asyncio.run(sign_in_at_length()) == 413
    assert parts == 2


def signed_in_as(users: Users, store: Store, role: Any, tmp_path: Path, *paths: str) -> list[int]:
    add_user(tmp_path / "users.txt", "ann", PASSWORD, role)
    answers = asked(guarded(store, users), sign_in(), *(("GET", path, {}) for path in paths))
    return [answer.status_code for answer in answers[1:]]


def test_the_style_sheet_alone_is_for_people_who_have_not_signed_in(store: Store, users: Users) -> None:
    async def page(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse(f"inside: {scope['path']}")(scope, receive, send)

    guard = guarded(store, users, app=page)
    form, style, *others = asked(
        guard,
        ("GET", "/sign-in", {}),
        ("GET", STYLE_SHEET, {}),
        ("POST", STYLE_SHEET, {"headers": {"origin": HERE}}),
        ("GET", "/assets", {}),
        ("GET", "/assetsx/grove.css", {}),
        ("GET", "/label", {}),
    )
    assert f'href="{STYLE_SHEET}"' in form.text
    assert style.text == "inside: /assets/grove.css"
    assert [answer.status_code for answer in others] == [303] * 4


def test_annotators_see_their_pages_and_operators_all(store: Store, users: Users, tmp_path: Path) -> None:
    paths = ("/", "/label", "/sure", "/_nicegui/x.js", "/models", "/dead-letters", "/anything")
    assert signed_in_as(users, store, "annotator", tmp_path, *paths) == [200] * 4 + [403] * 3
    assert signed_in_as(users, store, "operator", tmp_path, *paths) == [200] * 7


def test_a_probe_needs_no_session(store: Store, users: Users) -> None:
    (answer, other) = asked(guarded(store, users), ("GET", "/healthz", {}), ("GET", "/healthz/x", {}))
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert other.headers["location"] == "/sign-in"


def test_a_role_that_was_taken_ends_what_it_opened(store: Store, users: Users, tmp_path: Path) -> None:
    still: list[Any] = []

    async def page(scope: Any, receive: Any, send: Any) -> None:
        still.append(scope["signed_in"])
        await inner(scope, receive, send)

    add_user(tmp_path / "users.txt", "ann", PASSWORD, "operator")
    asked(guarded(store, users, app=page), sign_in(), ("GET", "/models", {}))
    assert still[0]()
    add_user(tmp_path / "users.txt", "ann", PASSWORD, "annotator")
    assert not still[0]()


def test_sign_ins_and_outs_are_in_the_audit_log_without_a_secret(store: Store, users: Users) -> None:
    asked(
        guarded(store, users),
        sign_in("wrong password"),
        sign_in(),
        ("POST", "/sign-out", {"headers": {"origin": HERE}}),
    )
    entries = [entry for _, entry in AuditLog(store).waiting()]
    assert [(entry.user, entry.action) for entry in entries] == [("ann", "sign-in"), ("ann", "sign-out")]
    assert PASSWORD not in str(entries)


def test_whom_a_trusted_proxy_names_is_in(store: Store) -> None:
    proxy = Proxy.of("X-User", ["127.0.0.0/8"], ["bob"])
    guard = guarded(store, loopback=False, proxy=proxy)
    base = "https://label.example"
    ann, bob, nobody, odd, twice = asked(
        guard,
        ("GET", "/", {"headers": {"x-user": "ann"}}),
        ("GET", "/models", {"headers": {"x-user": "bob"}}),
        ("GET", "/", {}),
        ("GET", "/", {"headers": {"x-user": "<ann>"}}),
        ("GET", "/", {"headers": [("x-user", "ann"), ("x-user", "bob")]}),
        base=base,
    )
    assert (ann.status_code, ann.text) == (200, "ann")
    assert (bob.status_code, bob.text) == (200, "bob")
    assert [each.status_code for each in (nobody, odd, twice)] == [403] * 3


def test_the_header_is_not_believed_from_elsewhere(store: Store) -> None:
    guard = guarded(store, loopback=False, proxy=Proxy.of("X-User", ["10.0.0.2"], []))
    (answer,) = asked(guard, ("GET", "/", {"headers": {"x-user": "ann"}}))  # it comes from 127.0.0.1
    assert answer.status_code == 403


def test_with_users_of_our_own_no_header_lets_in(store: Store, users: Users) -> None:
    (answer,) = asked(guarded(store, users), ("GET", "/", {"headers": {"x-forwarded-user": "ann"}}))
    assert answer.status_code == 303


@pytest.mark.parametrize(
    ("trusted", "said"),
    [([], "needs --trusted-proxy"), (["x"], "or a network"), (["0.0.0.0/0"], "every address")],
)
def test_a_proxy_must_be_one_that_can_be_trusted(trusted: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Proxy.of("X-User", trusted, [])


def test_requests_have_a_rate(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = now_ms()
    monkeypatch.setattr("streamapp.web.guard.now_ms", lambda: now)
    guard = guarded(store)
    answers = asked(guard, *([("GET", "/", {})] * (REQUESTS_BURST + 20)))
    assert [answer.status_code for answer in answers] == [200] * REQUESTS_BURST + [429] * 20
    now += 100
    assert [each.status_code for each in asked(guard, ("GET", "/", {}))] == [200]


def test_a_websocket_that_floods_is_closed(store: Store) -> None:
    got: list[str] = []

    async def socket(scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive())["type"] == "websocket.receive":
            got.append(message["type"])

    async def receive() -> Any:
        return {"type": "websocket.receive", "text": "x"}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    headers = [(b"host", b"localhost"), (b"origin", HERE.encode())]
    scope = {"type": "websocket", "path": "/", "headers": headers, "query_string": b""}
    asyncio.run(guarded(store, app=socket)(scope, receive, send))
    assert len(got) >= MESSAGES_BURST
