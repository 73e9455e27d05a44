"""Sign-in by tokens at a real broker, which verifies them by the keys of a real issuer.

Tokens last for seconds, and the broker closes the connection of a client that does not sign in again.
"""

from __future__ import annotations

import signal
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path
from threading import Event

import orjson
import pytest

from streamapp.settings.rights import RIGHTS
from streamapp.web.annotation_terms import Terms
from tests.broker.issuer import COMPANY, PAST, seconds_to_end
from tests.broker.secured import properties_of
from tests.broker.test_rights import SPEC, Case, Clerk, denied, tool_labels
from tests.broker.test_web import Threads, card_of, now
from tests.broker.token_broker import AUDIENCE, LIFE_S, SECRET, TokenBroker, token_broker
from tests.broker.workers import PATIENCE, UNHURRIED, Installation, WorkerProcess, wait_until
from tests.label_studio_stub import LEGACY, Stub
from tests.token_endpoint import Answer, TokenEndpoint, granted, refused
from topics.tokens.renewal import EARLIEST
from topics.tokens.sign_in import signed_in

pytestmark = [pytest.mark.broker, pytest.mark.timeout(1500)]

ROWS, RATE = 600, 25  # two lives of a token
RACK = "rack-7"
FIRST_USER = "topics-describe"
FORGED = "AAAAAAAA"  # the end of a signature
DESCRIBE = Case("topics describe")


class Door(TokenEndpoint):
    """The issuer's endpoint behind a door that can be shut: then the endpoint is away."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.behind = url
        self.is_shut = False
        self.let_in: list[float] = []  # moments

    def answer(self, body: str, headers: Message) -> Answer:
        if self.is_shut:
            return refused(503, "temporarily_unavailable")
        self.let_in.append(time.monotonic())
        given = {name: headers[name] for name in ("Authorization", "Content-Type")}
        request = urllib.request.Request(self.behind, body.encode(), given)
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return response.status, response.read()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenBroker]:
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        token_broker(monkeypatch, tmp_path_factory.mktemp("tokens")) as broker,
    ):
        broker.first_token = broker.issuer.token(COMPANY, FIRST_USER, AUDIENCE)
        yield broker


@pytest.fixture(scope="module")
def clerk(broker: TokenBroker, tmp_path_factory: pytest.TempPathFactory) -> Clerk:
    settings = {"GROVE_MODEL_SPEC": orjson.dumps(SPEC).decode(), **UNHURRIED}
    directory = tmp_path_factory.mktemp("clerk")
    return Clerk(
        broker, Installation(broker.bootstrap_servers, "tokens.", 2, directory, settings, "streamapp worker")
    )


def test_a_stream_outlives_its_tokens_and_people_answer_its_requests(
    clerk: Clerk, broker: TokenBroker, tmp_path: Path
) -> None:
    place = clerk.place
    for command in ("worker", "replay", "oracle", "web", "bridge label-studio"):
        clerk.grant(command, RIGHTS[command])
    send = Case(
        "replay",
        (f"--data=gen:sea?n={ROWS}", "--labels=apart", "--label-loss=0.5", f"--rate={RATE}", "--key=shop"),
    )
    token = f"{broker.issuer.url(COMPANY)}/token"
    with Door(token) as door, ThreadPoolExecutor(1) as threads:
        settings = clerk.environment("worker", place.prefix) | broker.settings_at(door.url, "worker")
        settings |= {"GROVE_KAFKA_CLIENT_RACK": RACK, "GROVE_PROCESSING_GUARANTEE": "exactly_once"}
        began = time.monotonic()
        with place.worker("w", fresh=True, **settings) as worker:
            worker.wait_until_ready()
            sending = threads.submit(clerk.run, send)
            endpoint_goes_away(door, worker)
            code, output = sending.result()
            assert code == 0, output
            place.wait_for_lag_0(alive=[worker])
            assert len(door.let_in) >= 3, "the tokens of the stream have ended meanwhile"
            lives = (time.monotonic() - began) / (LIFE_S * EARLIEST)
            assert len(door.let_in) <= lives + 1, "all clients of the worker share the token of one source"
            assert worker.metric_of("grove_records_total", topic="labels", outcome="learned") > 0
            worker.signal(signal.SIGUSR2)
            assert worker.wait() == 0, worker.log
    answered = [(p["partition"], p["id"]) for p in place.read(place.names.predictions)]
    assert len(answered) == ROWS == len(set(answered)), "each instance is answered exactly once"
    assert SECRET not in worker.log
    for client in ("aiokafka.consumer", "sign_in_again"):
        assert f" {client}" not in worker.log, "connections outlive the token with which they were opened"
    assert f'"rackId":"{RACK}"' in requests_seen(broker)
    people_and_label_tools_sign_in(clerk, broker, tmp_path)


def endpoint_goes_away(door: Door, worker: WorkerProcess) -> None:
    """Shut the door until the worker has noticed; then open it and wait until the worker is well."""
    door.wait_for(2)
    door.is_shut = True
    wait_until(lambda: "HTTP status 503" in worker.page("/readyz")[1], PATIENCE, lambda: worker.log)
    status, text = worker.page("/readyz")
    assert (status, "[-]token failed: " in text) == (503, True), text
    assert worker.metric("grove_token_expires_seconds") <= LIFE_S
    door.is_shut = False
    wait_until(lambda: worker.page("/readyz")[0] == 200, PATIENCE, lambda: worker.log)
    assert "[+]token ok: valid for " in worker.page("/readyz?verbose")[1]


def requests_seen(broker: TokenBroker) -> str:
    """The requests that the broker has logged."""
    return broker.log_file.read_text()


def people_and_label_tools_sign_in(clerk: Clerk, broker: TokenBroker, tmp_path: Path) -> None:
    """Answer requests of the stream by a page, a label tool and an oracle, with the rights of its test."""
    place, command = clerk.place, "bridge label-studio"
    kafka = signed_in(properties_of(broker.settings_of("web")))
    with Threads(kafka, place.names, tmp_path / "web.sqlite", Terms(undo_ms=0)) as queue:
        card = card_of(queue, "ann")
        queue.actions.answer("ann", card.number, None, now())
        wait_until(lambda: queue.counts(now()).sent == 1, PATIENCE, lambda: str(queue.counts(now())))
    with Stub() as stub:
        options = (f"--url={stub.url}", "--project=7", "--sweep-seconds=1", f"--state={tmp_path / 'sent'}")
        with clerk.running(Case(command, options), {"GROVE_LABEL_STUDIO_TOKEN": LEGACY}) as bridge:
            wait_until(lambda: len(stub.tasks) > 0, PATIENCE, bridge)
            stub.annotate(stub.tasks[0], ["good"])
            wait_until(lambda: bool(tool_labels(place)), PATIENCE, bridge)
    code, output = clerk.run(Case("oracle", (f"--data=gen:sea?n={ROWS}", "--limit=1")))
    assert code == 0, output


def test_rights_are_those_of_the_subject_in_the_token(clerk: Clerk) -> None:
    code, output = clerk.run(DESCRIBE)
    assert denied(code, output) == ""
    assert "user 'topics-describe'" in output and "--allow-principal User:topics-describe" in output
    clerk.grant(DESCRIBE.command, RIGHTS[DESCRIBE.command])
    code, output = clerk.run(DESCRIBE)
    assert code == 0, output


def test_a_client_without_a_good_token_is_told_why(clerk: Clerk, broker: TokenBroker) -> None:
    clerk.grant(DESCRIBE.command, RIGHTS[DESCRIBE.command])
    user, issuer = FIRST_USER, broker.issuer
    ended = broker.first_token
    real = issuer.token(COMPANY, user, AUDIENCE)
    forged = real[: -len(FORGED)] + FORGED
    with (
        TokenEndpoint(refused(401, "invalid_client", f"{SECRET} is wrong")) as wrong_secret,
        TokenEndpoint(granted(300, ended)) as late,
        TokenEndpoint(granted(300, forged)) as forger,
        TokenEndpoint() as closed,
    ):
        closed.__exit__()
        Event().wait(max(0.0, seconds_to_end(ended)))  # the end of a token is a moment and no event
        not_let_in = f"bootstrap.servers={broker.clients} does not let this client in"
        refusals: tuple[tuple[dict[str, str], *tuple[str, ...]], ...] = (
            (broker.settings_at(wrong_secret.url, user), "refuses", "invalid_client", "*** is wrong"),
            (broker.settings_at(f"{issuer.url(PAST)}/token", user), "has a token that expired"),
            (broker.settings_at(f"{issuer.url(COMPANY)}/token", user, "other"), not_let_in, "audience"),
            (broker.settings_at(late.url, user), not_let_in, "clocks"),
            (broker.settings_at(forger.url, user), not_let_in, "invalid_token"),
            (broker.settings_at(closed.url, user), "does not answer", "Connection refused"),
        )
        with ThreadPoolExecutor(len(refusals)) as threads:  # a command waits for seconds before it gives up
            ends = threads.map(lambda refusal: clerk.run(DESCRIBE, refusal[0]), refusals)
            for (_, *words), (code, output) in zip(refusals, ends, strict=True):
                assert code == 1, output
                (line,) = [line for line in output.splitlines() if line.startswith("grove: ")]
                assert all(word in line for word in words), output
                assert SECRET not in output and "Traceback" not in output
    code, output = clerk.run(DESCRIBE)
    assert code == 0, output
