"""Pseudonyms: the same for one key, others for another one, and no name where a page or a topic has one."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from streamapp.errors import UsageError
from streamapp.web.audit_log import AuditLog
from streamapp.web.guard import Entry, Guard
from streamapp.web.pseudonyms import Pseudonyms
from streamapp.web.store import Store
from streamapp.web.users import Sessions, Users, add_user


def test_a_pseudonym_belongs_to_a_key(tmp_path: Path) -> None:
    path = tmp_path / "names.key"
    first = Pseudonyms(path)
    assert path.stat().st_mode & 0o077 == 0
    assert Pseudonyms(path)("ann") == first("ann") != first("bob")
    assert Pseudonyms(tmp_path / "other.key")("ann") != first("ann")
    assert first("ann").startswith("person-")
    assert "ann" not in first("ann")


@pytest.mark.parametrize("text", ["", "not hex", "00ff"])
def test_a_file_without_a_key_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "names.key"
    path.write_text(text)
    with pytest.raises(UsageError, match="--pseudonyms .*name a new file"):
        Pseudonyms(path)


def test_pages_and_the_audit_log_get_pseudonyms(tmp_path: Path) -> None:
    users = tmp_path / "users.txt"
    add_user(users, "ann", "correct horse battery")
    alias = Pseudonyms(tmp_path / "names.key")
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["annotator"])

    async def nothing() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        pass

    with closing(Store(":memory:")) as store:
        log, sessions, known = AuditLog(store), Sessions(store), Users(users)
        guard = Guard(app, Entry(sessions, known, "web", True, log, None, alias))
        token = sessions.begin("ann", 2**45, known.proof("ann"))
        headers = [(b"host", b"localhost"), (b"cookie", f"grove_session={token}".encode())]
        about = {"type": "http", "client": ("127.0.0.1", 1), "headers": headers, "query_string": b""}
        asyncio.run(guard({**about, "method": "GET", "path": "/label"}, nothing, send))
        leaving = [*headers, (b"origin", b"http://localhost")]
        asyncio.run(
            guard({**about, "headers": leaving, "method": "POST", "path": "/sign-out"}, nothing, send)
        )
        assert seen == [alias("ann")]
        assert [(entry.user, entry.action) for _, entry in log.waiting()] == [(alias("ann"), "sign-out")]
