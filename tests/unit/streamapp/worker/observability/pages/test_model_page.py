"""Models for readers: the page `/models/KEY`, the parent's copy of it, and `grove tree`."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

from core.model.model import Model
from streamapp.cli.main import main
from streamapp.errors import StreamappError
from streamapp.settings import Settings
from streamapp.worker.observability.pages import snapshot_page
from streamapp.worker.observability.pages.parent import ParentPages, model
from streamapp.worker.observability.pages.snapshot_page import (
    SHARE,
    TIMEOUT_S,
    Busy,
    Copies,
    TooLarge,
    copy_of,
    fetch_model,
    not_here,
    too_large,
)
from tests.topology.partition import Partition, Record

KEY = "shop/1 ü?"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "sea.model"
    assert main(["prequential", "--data", "gen:sea?n=20000", "--save", str(path), "--json"]) == 0
    return path


@pytest.fixture(scope="module")
def worker(file: Path) -> Iterator[str]:
    """HOST:PORT of a page that has the model under one key, as a worker's."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = unquote(self.path) == f"/models/{KEY}"
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(file.read_bytes() if found else not_here("other").encode())

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_saved_model_is_the_model(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Model.load(file).summary().labels == 20_000
    assert main(["tree", str(file)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("all\n  attrib")
    assert main(["tree", str(file), "--format", "json", "--depth", "1"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {node["depth"] for node in document["nodes"]} == {0, 1}


def test_importances_are_listed_the_largest_first(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", str(file), "--importances", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert sum(found.values()) == pytest.approx(1.0)
    assert main(["tree", str(file), "--importances"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == list(found)
    assert main(["tree", str(file), "--importances", "--format", "svg"]) == 64
    assert "--importances goes with --format text or json, not with svg" in capsys.readouterr().err


@pytest.mark.parametrize(("form", "begins"), [("dot", "digraph"), ("svg", "<svg"), ("text", "all")])
def test_every_form_can_go_to_a_file(file: Path, form: str, begins: str, tmp_path: Path) -> None:
    output = tmp_path / "tree"
    assert main(["tree", str(file), "--format", form, "--output", str(output)]) == 0
    assert output.read_text(encoding="utf-8").startswith(begins)


def test_a_key_is_asked_of_the_worker(worker: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fetch_model(worker, KEY) == file.read_bytes()
    assert main(["tree", KEY, "--web", worker]) == 0
    assert capsys.readouterr().out.startswith("all\n")


def test_what_is_neither_file_nor_key_is_one_sentence(
    worker: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tree", "nobody", "--web", worker]) == 1
    said = capsys.readouterr().err
    assert "'nobody' is no file" in said
    assert "answers 404: no model with the key" in said
    assert main(["tree", "nobody", "--web", "127.0.0.1:9"]) == 1
    assert "no worker answers at 127.0.0.1:9" in capsys.readouterr().err


@pytest.mark.parametrize("web", ["localhost", "http://127.0.0.1:80", "127.0.0.1:80/x"])
def test_an_address_is_host_and_port(web: str) -> None:
    with pytest.raises(StreamappError, match="must be HOST:PORT"):
        fetch_model(web, KEY)


def test_a_file_that_is_no_model_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"something else")
    assert main(["tree", str(other)]) == 64
    said = capsys.readouterr().err
    assert f"{other}: snapshot must begin with" in said
    assert "grove prequential --save" in said


def test_a_model_that_cannot_be_saved_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = tmp_path / "missing" / "file"
    assert main(["prequential", "--data", "gen:sea?n=10", "--save", str(where)]) != 0
    assert f"--save {where}" in capsys.readouterr().err


def learned(rows: int = 1) -> Partition:
    partition = Partition()
    for n in range(rows):
        value = b'{"id":"%d","features":[%d,2.0],"label":"a"}' % (n, n % 7)
        partition.feed(Record("instances", KEY.encode(), value))
    return partition


def test_a_task_gives_a_copy_of_its_model() -> None:
    partition = learned()
    copy = copy_of([partition.task], KEY)
    assert isinstance(copy, Model)
    assert Model.restore(copy.snapshot()).summary().labels == 1
    before = copy.snapshot()
    partition.feed(Record("instances", KEY.encode(), b'{"id":"z","features":[1.0,2.0],"label":"a"}'))
    assert copy.snapshot() == before
    assert copy_of([partition.task], "nobody") is None


def test_a_model_that_takes_long_to_copy_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    partition = learned()
    size = partition.model(KEY).nbytes
    monkeypatch.setattr(snapshot_page, "LARGEST", size - 1)
    assert copy_of([partition.task], KEY) == TooLarge(size)
    assert "grove models export" in too_large(KEY, size)


async def asked_in_a_loop(times: int, monkeypatch: pytest.MonkeyPatch) -> tuple[float, float, int]:
    """Ask for a model again and again, on a clock of our own; return its end, the time copies took, refusals.

    The clock goes on where the page sleeps, and by 1 s where a copy is made.
    """
    now, spent, busy = 0.0, 0.0, 0

    async def sleep(seconds: float) -> None:
        nonlocal now
        if seconds > TIMEOUT_S:
            now += TIMEOUT_S
            raise TimeoutError
        now += seconds

    async def read(_key: str) -> None:
        nonlocal now, spent
        now, spent = now + 0.01, spent + 0.01
        copies.took(0.01)

    monkeypatch.setattr(
        snapshot_page, "asyncio", SimpleNamespace(Lock=asyncio.Lock, sleep=sleep, timeout=asyncio.timeout)
    )
    monkeypatch.setattr(snapshot_page, "time", SimpleNamespace(monotonic=lambda: now))
    copies = Copies(read)
    for _ in range(times):
        try:
            await copies.of(KEY)
        except Busy:
            busy += 1
    return now, spent, busy


def test_whoever_asks_again_and_again_gets_a_small_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    end, spent, busy = asyncio.run(asked_in_a_loop(200, monkeypatch))
    assert spent > 0.0
    assert spent / end <= SHARE * 1.01
    assert busy == 0


def test_a_request_whose_turn_does_not_come_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_page, "TIMEOUT_S", 0.01)
    served = []

    async def story() -> None:
        async def read(key: str) -> None:
            served.append(key)
            copies.took(3600.0)

        copies = Copies(read)
        await copies.of("first")
        for _ in range(2):  # and gives its turn back
            with pytest.raises(Busy):
                await copies.of("second")

    asyncio.run(story())
    assert served == ["first"]


def test_the_parent_asks_its_workers(worker: str, file: Path) -> None:
    port = int(worker.rpartition(":")[2])
    settings = Settings(web_host="127.0.0.1", web_port=0)
    children = [
        SimpleNamespace(name=f"w-{port}", settings=settings.model_copy(update={"web_port": port}))
        for port in (9, port)
    ]
    with ParentPages(settings, children) as pages:
        web = f"127.0.0.1:{pages.port}"
        assert fetch_model(web, KEY) == file.read_bytes()
        with pytest.raises(StreamappError, match="no model with this key.*; w-9 does not answer"):
            fetch_model(web, "nobody")


def test_the_parent_hands_on_what_a_worker_says_of_a_model_it_does_not_serve() -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(413)
            self.end_headers()
            self.wfile.write(too_large(KEY, 1 << 30).encode())

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        settings = Settings(web_host="127.0.0.1", web_port=server.server_address[1])
        status, body, _ = model([SimpleNamespace(name="w-0", settings=settings)], "/models/k")
        server.shutdown()
        thread.join()
    assert status == 413
    assert b"grove models export" in body
