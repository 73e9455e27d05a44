"""`grove demo` as a person runs it: complete, and nothing is left behind however it ends."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = pytest.mark.broker

KEYS = [
    "instances",
    "predictions",
    "labels_requested",
    "labels_learned",
    "accuracy",
    "records_per_second",
    "drift_alerts",
    "dead_letters",
    "seconds",
    "models",
]

FEATURE_KEYS = [
    "instances",
    "predictions",
    "features_requested",
    "features_available",
    "cost",
    "dead_letters",
    "accuracy",
    "seconds",
    "models",
]


def start(
    tmp_path: Path, *arguments: str, servers: str | None = None, **more: str
) -> "subprocess.Popen[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GROVE_")}
    environment |= {"TMPDIR": str(tmp_path), "COLUMNS": "120", **more}
    if servers:
        environment["GROVE_KAFKA_BOOTSTRAP_SERVERS"] = servers
    return subprocess.Popen(
        [sys.executable, "-m", "streamapp", "demo", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def processes_of(tmp_path: Path) -> list[int]:
    """Processes that a demo with this temporary directory started, itself included."""
    mark = f"TMPDIR={tmp_path}\0".encode()
    numbers = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal():
            try:
                ours = mark in (directory / "environ").read_bytes() + b"\0"
                state = (directory / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue  # it has ended meanwhile, or belongs to somebody else
            if ours and state != "Z":
                numbers.append(int(directory.name))
    return numbers


def wait_until_gone(tmp_path: Path, seconds: float = 120) -> list[int]:
    """The processes that are left when all are gone, or one does not end within a time."""
    left = processes_of(tmp_path)
    while left:
        try:
            watch = os.pidfd_open(left[0])
        except ProcessLookupError:  # it has ended meanwhile
            ended = True
        else:
            ended = bool(select.select([watch], [], [], seconds)[0])
            os.close(watch)
        left = processes_of(tmp_path)
        if not ended:
            break
    return left


def test_every_record_is_answered_and_every_label_learned(broker, tmp_path: Path) -> None:
    done = start(tmp_path, "--records", "3000", "--rate", "300", "--json", servers=broker.bootstrap_servers)
    out, err = done.communicate(timeout=400)
    assert done.returncode == 0, err
    summary = json.loads(out)
    assert list(summary) == KEYS
    assert summary["instances"] == summary["predictions"] == 9000
    assert 3000 + 2 * 200 < summary["labels_requested"] < 3000 + 2 * 400
    assert summary["labels_learned"] == summary["labels_requested"]
    assert summary["dead_letters"] == 0
    assert summary["accuracy"] > 0.5  # of the very first rows no model knows a class yet
    assert summary["seconds"] > 3
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_features_are_bought_and_paid_for(broker, tmp_path: Path) -> None:
    done = start(
        tmp_path, "--features", "--records", "500", "--rate", "40", "--json", servers=broker.bootstrap_servers
    )
    out, err = done.communicate(timeout=400)
    assert done.returncode == 0, err
    summary = json.loads(out)
    assert list(summary) == FEATURE_KEYS
    assert summary["instances"] == summary["predictions"] == 1500
    assert summary["features_available"] == 1500 * 123
    assert summary["dead_letters"] == 0
    assert summary["cost"] == summary["features_requested"], "each feature costs 1, and each comes"
    assert summary["accuracy"] > 0.6
    costs = {name: model["cost"] for name, model in summary["models"].items()}
    assert costs["buy-all"] == 123
    assert abs(costs["buy-random"] - 0.15 * 123) < 1
    assert 0.05 * 123 < costs["buy-path"] < 0.25 * 123
    assert processes_of(tmp_path) == []


@pytest.mark.nightly  # its parts are in the gate: two workers, a broker of one's own, and below a file
def test_a_file_of_ones_own_with_two_workers_and_no_broker(tmp_path: Path) -> None:
    rows = subprocess.run(
        [sys.executable, "-m", "streamapp", "generate", "agrawal", "--n", "1500", "--function", "2"],
        capture_output=True,
        text=True,
        check=True,
    )
    (tmp_path / "own.csv").write_text(rows.stdout)
    done = start(tmp_path, "--data", str(tmp_path / "own.csv"), "--workers", "2", "--rate", "500")
    out, err = done.communicate(timeout=400)
    assert done.returncode == 0, err
    assert "4,500 of 4,500 records answered" in out
    for model in ("all-labels", "ask-10", "random-10"):
        assert re.search(rf"{model} .* 1,500 ", out)
    assert processes_of(tmp_path) == []
    assert [file.name for file in tmp_path.iterdir()] == ["own.csv"]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.nightly),  # both are handled alike
        pytest.param(signal.SIGTERM, marks=pytest.mark.nightly),
        signal.SIGKILL,
    ],
    ids=lambda s: s.name,
)
def test_nothing_is_left_running(tmp_path: Path, end: signal.Signals) -> None:
    demo = start(tmp_path, "--rate", "200")
    assert demo.stdout is not None
    for line in demo.stdout:
        if "answered" in line:
            break
    assert len(processes_of(tmp_path)) >= 5
    demo.send_signal(end)
    _out, err = demo.communicate(timeout=120)
    assert wait_until_gone(tmp_path) == []
    assert "Traceback" not in err
    if end != signal.SIGKILL:
        assert demo.returncode == 130
    assert list(tmp_path.glob("grove-broker-*")) == []


def buttons_of_a_card(address: str) -> list[str]:
    """The classes to choose from on the card that a person has when the page opens."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(address)
        buttons = page.get_by_role("group", name="Classes").get_by_role("button")
        buttons.first.wait_for(timeout=120_000)
        texts: list[str] = buttons.all_inner_texts()
        browser.close()
    return texts


@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not here")
def test_the_web_application_comes_up_beside_a_file_of_ones_own_and_is_gone_afterwards(
    broker, tmp_path: Path
) -> None:
    rows = (f"{n},{n % 7},{'low' if n < 25 else 'high'}\n" for n in range(50))
    (tmp_path / "own.csv").write_text("x,y,class\n" + "".join(rows))
    words = ("--web", "--data", str(tmp_path / "own.csv"), "--rate", "50")
    demo = start(tmp_path, *words, servers=broker.bootstrap_servers)
    assert demo.stdout is not None
    address = ""
    try:
        first = demo.stdout.readline()
        match = re.search(r"grove web is at (http://127\.0\.0\.1:\d+/) .*; you label for ask-10;", first)
        assert match, f"the first line has the address: {first!r}"
        address = match[1]
        assert buttons_of_a_card(f"{address}label") == ["high (1)", "low (2)"]
        assert any("the replay is over" in line for line in demo.stdout)
        assert demo.poll() is None, "it goes on until somebody ends it"
    finally:
        demo.send_signal(signal.SIGINT)
        out, err = demo.communicate(timeout=120)
    assert demo.returncode == 0, err
    assert "150 of 150 records answered" in out
    assert wait_until_gone(tmp_path) == []
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=120)


def test_a_worker_that_dies_is_one_line(broker, tmp_path: Path) -> None:
    demo = start(tmp_path, "--rate", "200", servers=broker.bootstrap_servers)
    assert demo.stdout is not None
    for line in demo.stdout:
        if "answered" in line:
            break
    (worker,) = [
        pid
        for pid in processes_of(tmp_path)
        if (command := Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"))[3:4] == [b"worker"]
        and command[1:2] == [b"-m"]
    ]
    os.kill(worker, signal.SIGKILL)
    _, err = demo.communicate(timeout=120)
    assert demo.returncode == 1
    assert "grove: the worker ended with status" in err
    assert "Traceback" not in err
    assert wait_until_gone(tmp_path) == []


def test_mistakes_are_found_before_anything_is_started(tmp_path: Path) -> None:
    demo = start(tmp_path, "--data", "nothing.csv")
    _, err = demo.communicate(timeout=120)
    assert demo.returncode == 64, "a mistake on the command line"
    assert err == "grove: nothing.csv: no such file\n"
    assert list(tmp_path.iterdir()) == [], "no broker's directory"


def test_a_broker_that_is_not_there_is_found_before_anything_is_compiled(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    # With features to buy, the demo reads a file. Its other stream is made by kernels of its own.
    demo = start(tmp_path, "--features", "--json", servers="127.0.0.1:1", NUMBA_CACHE_DIR=str(cache))
    out, err = demo.communicate(timeout=120)
    assert demo.returncode == 1
    assert out == ""
    step, *waits, mistake = err.splitlines()
    assert step == "creating topics …", "said at once, beside --json too"
    assert all(line.startswith("waiting, ") for line in waits), "on a busy machine"
    assert mistake.startswith("grove: bootstrap.servers=127.0.0.1:1 did not answer")
    assert list(cache.rglob("*.nbi")) == []
