"""Guard: who comes in, from which page, and what every answer carries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from streamapp.web.guard import COOKIE, Entry, Guard
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
    (answer,) = asked(Guard(inner, Entry(Sessions(store), None, "web", True)), ("GET", "/", {}))
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
    guard = Guard(inner, Entry(Sessions(store), None, "web", True))
    (answer,) = asked(guard, (method, "/", {"headers": headers}), base=base)
    assert answer.status_code == 403


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
    asyncio.run(Guard(socket, Entry(Sessions(store), None, "web", True))(scope, receive, send))
    assert reached == (["web"] if goes_on else [])
    assert [message["type"] for message in sent] == ([] if goes_on else ["websocket.close"])


@pytest.mark.parametrize("loopback", [True, False])
def test_users_sign_in_and_out(store: Store, users: Users, loopback: bool) -> None:
    guard = Guard(inner, Entry(Sessions(store), users, "web", loopback))
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
    guard = Guard(inner, Entry(Sessions(store), users, "web", True))
    tries = [sign_in("wrong password")] * ATTEMPTS
    answers = asked(guard, *tries, sign_in())
    assert [answer.status_code for answer in answers] == [401] * ATTEMPTS + [429]


def test_a_body_that_is_too_long_is_not_read(store: Store, users: Users) -> None:
    guard = Guard(inner, Entry(Sessions(store), users, "web", True))
    assert asked(guard, sign_in("x" * 10_000))[0].status_code == 413
