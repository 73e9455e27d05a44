"""Users: the file, passwords, how often one may be wrong, sessions."""

import socket
from contextlib import closing
from pathlib import Path

import pytest
from starlette.datastructures import Headers

from streamapp.cli.main import main
from streamapp.errors import StreamappError, UsageError
from streamapp.web.proxy import Proxy
from streamapp.web.store import Store
from streamapp.web.users import (
    ATTEMPTS,
    SESSION_MS,
    SESSIONS_MAX,
    WITHIN_MS,
    Sessions,
    SignInLimit,
    Users,
    add_user,
)

PASSWORD = "correct horse battery"


def test_a_user_signs_in_with_his_password_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "users.txt"
    add_user(path, "ann", PASSWORD)
    add_user(path, "bob", "x" * 10)
    users = Users(path)
    assert users.check("ann", PASSWORD)
    assert not users.check("ann", "x" * 10)
    assert not users.check("carl", PASSWORD)
    add_user(path, "ann", "another one of hers")
    assert not users.check("ann", PASSWORD)
    assert users.check("ann", "another one of hers")
    assert PASSWORD not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0


def test_lines_of_before_roles_are_annotators(tmp_path: Path) -> None:
    path = tmp_path / "users.txt"
    add_user(path, "ann", PASSWORD)
    path.write_text(path.read_text().replace(":annotator:", ":"))
    add_user(path, "bob", PASSWORD, "operator")
    users = Users(path)
    assert (users.role("ann"), users.role("bob"), users.role("carl")) == ("annotator", "operator", None)
    assert users.check("ann", PASSWORD)


@pytest.mark.parametrize(("name", "password"), [("a:b", PASSWORD), ("", PASSWORD), ("ann", "short")])
def test_bad_names_and_passwords_are_refused(tmp_path: Path, name: str, password: str) -> None:
    with pytest.raises(UsageError, match="must have"):
        add_user(tmp_path / "users.txt", name, password)


@pytest.mark.parametrize("name", ["agreement", "pausing"])
def test_names_of_the_applications_own_entries_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="choose another name"):
        add_user(tmp_path / "users.txt", name, PASSWORD)
    proxy = Proxy.of("X-User", ["10.0.0.2"], [])
    assert proxy.user(Headers({"X-User": name}), "10.0.0.2") is None
    assert main(["people", "erase", name, "--yes", "-b", "127.0.0.1:1"]) == 64


def test_a_file_without_users_or_with_other_lines_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must have a user"):
        Users(tmp_path / "none.txt")
    path = tmp_path / "users.txt"
    path.write_text("ann:secret\n")
    with pytest.raises(StreamappError, match=r"users.txt:1 must be NAME:HASH") as refused:
        Users(path)
    assert "secret" not in str(refused.value)


def test_wrong_passwords_are_counted_for_a_minute() -> None:
    limit = SignInLimit()
    assert [limit.admits("ann", "::1", 1000 + n) for n in range(ATTEMPTS + 1)] == [True] * ATTEMPTS + [False]
    assert limit.admits("bob", "::1", 1010)
    assert limit.admits("ann", "::1", 1000 + WITHIN_MS)
    limit.succeeded("ann", "::1")
    assert limit.admits("ann", "::1", 1001)


def test_an_address_may_not_try_all_names() -> None:
    limit = SignInLimit()
    tried = [limit.admits(f"user{n}", "10.0.0.1", 0) for n in range(60)]
    assert tried == [True] * 50 + [False] * 10
    assert limit.admits("ann", "10.0.0.2", 0)


def test_a_session_ends_by_time_and_by_signing_out() -> None:
    store = Store(":memory:")
    sessions = Sessions(store)
    token, other = sessions.begin("ann", 0), sessions.begin("bob", 0)
    assert (sessions.annotator(token, 1), sessions.annotator(other, 1)) == ("ann", "bob")
    assert sessions.annotator(token, SESSION_MS) is None
    sessions.end(token)
    assert sessions.annotator(token, 1) is None
    with store.reading() as db:
        assert token.encode() not in b"".join(row[0] for row in db.execute("SELECT digest FROM session"))
    store.close()


def test_a_user_has_so_many_sessions_and_the_oldest_ends(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "web.sqlite")) as store:
        sessions = Sessions(store)
        other = sessions.begin("bob", 0)
        tokens = [sessions.begin("ann", n) for n in range(100)]
        living = [token for token in tokens if sessions.annotator(token, 1000) == "ann"]
        assert living == tokens[-SESSIONS_MAX:]
        assert sessions.annotator(other, 1000) == "bob"
        assert [Sessions(store).annotator(token, 1000) for token in living] == ["ann"] * SESSIONS_MAX
        with store.reading() as db:
            assert db.execute("SELECT count(*) FROM session").fetchone() == (SESSIONS_MAX + 1,)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "--host 0.0.0.0 must be a loopback address unless --users"),
        (["--since", "yesterday"], "--since yesterday must be a time such as"),
        (["--add-user", "ann"], "--add-user needs --users FILE"),
        (["--certificate", "cert.pem"], "must be given together"),
        (
            ["--certificate", "cert.pem", "--private-key", "key.pem"],
            "--certificate cert.pem with --private-key key.pem cannot be used: [Errno 2]",
        ),
    ],
)
def test_what_the_command_refuses(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["web", *arguments]) == 64
    assert said in capsys.readouterr().err


def test_an_address_that_is_taken_is_seen_before_anything_is_started(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        state = tmp_path / "web.sqlite"
        assert main(["web", "--port", str(port), "--state", str(state), "-b", "127.0.0.1:1"]) == 64
    said = capsys.readouterr().err
    assert f"--host 127.0.0.1 --port {port} cannot be listened on: Address already in use; name" in said
    assert not state.exists()
