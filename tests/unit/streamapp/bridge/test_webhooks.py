"""Webhooks of strangers: slow ones, forged ones, too large ones, damaged ones; over real sockets."""

from __future__ import annotations

import json
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import trustme

from streamapp.bridge import open_connections
from streamapp.bridge.label_tool import Given
from streamapp.bridge.open_connections import BODIES_MAX, BODY_MAX, CONNECTIONS_MAX
from streamapp.bridge.tasks import given_by
from streamapp.bridge.webhooks import Webhooks
from streamapp.web.certificate import server_tls

PATIENCE = 120.0
DATA = {"grove_request_id": "r", "grove_key": "k", "grove_instance_id": "i", "grove_partition": 0}
CHOSEN = [{"type": "choices", "value": {"choices": ["yes"]}}]
BODY: dict[str, Any] = {
    "action": "ANNOTATION_CREATED",
    "task": {"id": 1, "data": DATA},
    "annotation": {"id": 5, "result": CHOSEN, "completed_by": 1},
}


class Bridge:
    """The bridge's end: what annotations say is read as the bridge reads it."""

    def __init__(self) -> None:
        self.given: list[Given] = []

    def take(self, task: Any, annotations: Any) -> int:
        labels = [given_by(task, annotation) for annotation in annotations]
        self.given += [label for label in labels if label is not None]
        return len(labels)


@pytest.fixture
def bridge() -> Bridge:
    return Bridge()


@pytest.fixture
def server(bridge: Bridge) -> Iterator[Webhooks]:
    with Webhooks(("127.0.0.1", 0), "", bridge.take) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join(PATIENCE)


def connect(server: Webhooks) -> socket.socket:
    return socket.create_connection(server.server_address, PATIENCE)


def request(body: bytes, *headers: str, length: int | str | None = None) -> bytes:
    lines = ["POST / HTTP/1.1", "Host: 127.0.0.1", *headers]
    lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def answer(server: Webhooks, data: bytes) -> tuple[int, str]:
    """The code and text of the answer; 0 where the connection ended without one."""
    with connect(server) as client:
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it answered before the end
        text = b""
        try:
            while part := client.recv(1 << 16):
                text += part
        except ConnectionError:
            return 0, ""
    head, _, body = text.decode("latin-1").partition("\r\n\r\n")
    match = re.match(r"HTTP/1\.\d (\d+)", head)
    return (int(match[1]), body) if match else (0, body)


def wait_for_threads(most: int) -> None:
    """Return when so many threads are left: that of a connection ends a moment after it."""
    deadline = time.monotonic() + PATIENCE
    while threading.active_count() > most:
        assert time.monotonic() < deadline, threading.enumerate()
        threading.Event().wait(0.01)


def has_ended(client: socket.socket, seconds: float) -> bool:
    """Whether the server ends a connection within a time."""
    client.settimeout(seconds)
    try:
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


GOOD = json.dumps(BODY).encode()


def test_clients_that_never_finish_hold_up_themselves_alone(server: Webhooks, bridge: Bridge) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        slow = [stack.enter_context(connect(server)) for _ in range(3 * CONNECTIONS_MAX)]
        for n, client in enumerate(slow):
            whole = request(b"{", length=BODY_MAX)
            client.sendall(whole if n % 2 else whole[: n % 40])
            if n % 16 == 0:
                assert answer(server, request(GOOD))[0] == 200, n
        wait_for_threads(before + CONNECTIONS_MAX + 1)
        assert has_ended(slow[0], PATIENCE), "the one that has been incomplete for longest made room"
        assert not has_ended(slow[-1], 0.2)
        assert answer(server, request(GOOD)) == (200, '{"detail": "1 labels sent"}')
    assert len(bridge.given) == 3 * CONNECTIONS_MAX // 16 + 1


def test_a_byte_now_and_then_does_not_keep_a_connection(
    server: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_connections, "TIMEOUT_S", 0.1)
    with connect(server) as client:
        assert any(_dripped(client, byte) for byte in request(GOOD) * 10)


def _dripped(client: socket.socket, byte: int) -> bool:
    """Send one byte; return whether the server has ended the connection."""
    try:
        client.sendall(bytes([byte if byte != 10 else 32]))
    except OSError:
        return True
    return has_ended(client, 0.2)


def test_bodies_of_all_together_are_bounded(server: Webhooks) -> None:
    share = b"x" * (BODIES_MAX // 6)
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(server)) for _ in range(12)]
        for n, client in enumerate(clients):
            client.sendall(request(share, length=BODY_MAX))
            assert answer(server, request(GOOD))[0] == 200, n
        assert server.connections.held_bytes <= BODIES_MAX
        assert has_ended(clients[0], PATIENCE)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (request(b"x" * (BODY_MAX + 1)), 413),
        (request(GOOD, length=10**18), 413),
        (request(GOOD, length="9" * 5000), 413),
        (request(GOOD, length="-1"), 413),
        (request(GOOD, length="+5"), 413),
        (request(GOOD, length="\xb2"), 413),
        (request(GOOD, "Content-Length: 3"), 413),
        (request(GOOD, "Transfer-Encoding: chunked", length=""), 413),
        (request(GOOD, length=len(GOOD) + 1), 0),  # the client leaves before its end
        (request(GOOD, length=len(GOOD) - 1), 400),
        (request(b""), 400),
        (request(b"[" * 1_000_000), 400),
        (request(b"9" * 100_000), 400),
        (request(b'{"task": "\\ud800"}'), 400),
        (request(b"\xff"), 400),
        (request(GOOD, "Origin: http://127.0.0.1"), 403),
        (request(GOOD, *(f"X-{n}: x" for n in range(200))), 431),
        (request(GOOD, "X: " + "x" * 100_000), 431),
    ],
    ids=lambda value: None if isinstance(value, int) else value[-24:].decode("latin-1"),
)
def test_what_is_no_webhook_is_refused_and_the_next_one_is_answered(
    server: Webhooks, bridge: Bridge, data: bytes, code: int
) -> None:
    assert answer(server, data)[0] == code
    assert bridge.given == []
    assert answer(server, request(GOOD))[0] == 200
    assert len(bridge.given) == 1


@pytest.mark.parametrize("secret", ["Bearer s3cret", "Bearer \N{SNOWMAN}"])
def test_only_the_secret_lets_in(bridge: Bridge, secret: str) -> None:
    with Webhooks(("127.0.0.1", 0), secret, bridge.take) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        shown = secret.encode().decode("latin-1")
        for wrong in ("", "x", shown[:-1], shown + "x", shown.upper(), "\xff" * 9):
            assert answer(server, request(GOOD, f"Authorization: {wrong}"))[0] == 401
        assert bridge.given == []
        assert answer(server, request(GOOD, f"Authorization: {shown}"))[0] == 200
        server.shutdown()
        thread.join(PATIENCE)


ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**63,
    2**40,
    1.5,
    "",
    "x",
    [],
    [None],
    {},
    {"choices": 7},
    {"id": 1},
    [CHOSEN],
    "y" * 5000,
)


def odd_bodies() -> Iterator[dict[str, Any]]:
    """Bodies of which one part is something else than Label Studio writes."""
    places = [("task",), ("task", "data"), ("annotation",), ("annotation", "id"), ("annotation", "result")]
    places += [("task", "data", name) for name in DATA]
    places += [("annotation", name) for name in ("completed_by", "was_cancelled")]
    for place in places:
        for odd in ODD:
            body = json.loads(GOOD)
            at = body
            for name in place[:-1]:
                at = at[name]
            at[place[-1]] = odd
            yield body


def test_odd_parts_of_a_body_end_no_request(server: Webhooks, bridge: Bridge) -> None:
    for body in odd_bodies():
        code, text = answer(server, request(json.dumps(body).encode()))
        assert code == 200, (body, text)
    for given in bridge.given:
        assert isinstance(given.annotation, int)
        assert 0 <= given.annotation < 2**63
        assert 0 <= given.partition < 2**31
        assert len(given.annotator) < 300


@pytest.mark.parametrize("rounds", [30, pytest.param(5_000, marks=pytest.mark.nightly)])
def test_damaged_requests_leave_the_server_as_it_was(
    server: Webhooks, bridge: Bridge, rounds: int, caplog: pytest.LogCaptureFixture
) -> None:
    draw = random.Random(rounds)
    whole = request(GOOD)
    threads = threading.active_count()
    for n in range(rounds):
        data = bytearray(whole[: draw.randrange(1, len(whole) + 1)] if n % 3 else whole)
        for _ in range(draw.randrange(4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        answer(server, bytes(data))
        if n % 100 == 0:
            assert answer(server, request(GOOD))[0] == 200
    assert answer(server, request(GOOD))[0] == 200
    assert "a webhook ended with" not in caplog.text
    wait_for_threads(threads + 2)


def test_webhooks_come_over_tls_and_a_handshake_that_never_ends_is_ended(
    bridge: Bridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_connections, "TIMEOUT_S", 2.0)  # a good handshake takes long on a busy machine
    authority = trustme.CA()
    pair = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    pair.cert_chain_pems[0].write_to_path(certificate)
    pair.private_key_pem.write_to_path(key)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with Webhooks(("127.0.0.1", 0), "", bridge.take, tls=server_tls(certificate, key)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        with ExitStack() as stack:
            silent = [stack.enter_context(connect(server)) for _ in range(CONNECTIONS_MAX + 4)]
            plain = stack.enter_context(connect(server))
            plain.sendall(request(GOOD))
            url = f"https://127.0.0.1:{server.server_address[1]}/"
            with urlopen(Request(url, GOOD), timeout=PATIENCE, context=trusting) as response:
                assert json.load(response) == {"detail": "1 labels sent"}
            assert all(has_ended(client, PATIENCE) for client in silent)
            assert b"200" not in plain.recv(1 << 16)
        server.shutdown()
        thread.join(PATIENCE)
    assert len(bridge.given) == 1
