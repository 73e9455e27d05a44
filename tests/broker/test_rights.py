"""The table of rights on a broker with TLS, SCRAM-SHA-512 and ACLs.

What a command has there is granted, and nothing else: it runs with that, and ends with a clear line without.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import orjson
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from streamapp.settings.rights import QUESTIONS, RIGHTS, Right
from streamapp.web.annotation_terms import Terms
from streamapp.web.watch.inspector import InspectionError, Inspector
from tests.broker.fork_server import ForkedProcess
from tests.broker.secured import PASSWORD, SecuredBroker, secured_broker
from tests.broker.test_web import Threads, card_of, now
from tests.broker.workers import PATIENCE, Installation, wait_until
from tests.label_studio_stub import LEGACY, Stub
from topics.clients.partitioner import partition_of

pytestmark = [pytest.mark.broker, pytest.mark.timeout(3000)]

ROWS = 400
DATA = f"--data=gen:sea?n={ROWS}"
SPEC = {"learner": {"name": "h-tree", "grace_period": 50}, "query": "always"}
CLEAR = re.compile(r"(grove: )?.*\bmust allow \w+(,\w+)* to .*; grant it with kafka-acls --add .*")
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
INTERRUPTED = 130
KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
OPERATIONS = {operation.name.replace("_", "").lower(): operation for operation in AclOperation}


@dataclass
class Clerk:
    """Runs commands, each as a user of its own."""

    broker: SecuredBroker
    place: Installation
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def grant(self, command: str, rights: Sequence[Right], prefix: str = "", group: str = "") -> None:
        bindings = []
        prefix, group = prefix or self.place.prefix, group or self.place.group
        for right in rights:
            pattern = ResourcePatternType.PREFIXED if right.prefixed else ResourcePatternType.LITERAL
            name = right.resource(prefix, group)
            bindings += [
                AclBinding(
                    KINDS[right.kind],
                    name,
                    pattern,
                    f"User:{user_of(command)}",
                    "*",
                    OPERATIONS[operation.lower()],
                    AclPermissionType.ALLOW,
                )
                for operation in right.operations
            ]
        if bindings:
            self.broker.grant(bindings)

    def is_given_by(self, case: Case, right: Right) -> bool:
        """Whether the other entry of a case has the right, too."""
        return right.kind == "group" and case.also is not None and right in RIGHTS[case.also[0]]

    def grant_also(self, case: Case) -> None:
        if case.also is not None:
            self.grant(case.command, RIGHTS[case.also[0]], case.also[1])

    def environment(self, command: str, prefix: str) -> dict[str, str]:
        return self.broker.settings_of(user_of(command)) | {
            "GROVE_TOPICS_PREFIX": prefix,
            "GROVE_APPLICATION_ID": self.place.group,
            "GROVE_STATE_DIR": str(self.place.directory / "state"),
        }

    def run(self, case: Case, more: Mapping[str, str] = NOTHING) -> tuple[int, str]:
        """Run a command to its end; return its exit code and what it said. more: for its environment."""
        process, log = self._start(case, more)
        code = process.wait(PATIENCE)
        return code, log.read_text(errors="replace")

    @contextmanager
    def running(self, case: Case, more: Mapping[str, str] = NOTHING) -> Iterator[Callable[[], str]]:
        """Run a command that goes on until it is stopped; gives what it has said."""
        process, log = self._start(case, more)
        try:
            yield lambda: log.read_text(errors="replace")
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == INTERRUPTED, log.read_text(errors="replace")

    def _start(self, case: Case, more: Mapping[str, str]) -> tuple[ForkedProcess, Path]:
        log = self.place.directory / f"{next(self.numbers)}.log"
        words = ["streamapp", *case.command.split(), *case.arguments]
        environment = self.environment(case.command, case.prefix or self.place.prefix)
        return ForkedProcess(words, {**os.environ, **environment, **more}, log), log


def user_of(command: str) -> str:
    return re.sub(r"\W+", "-", command).strip("-")


def denied(code: int, output: str) -> str:
    """What is wrong with the end of a command that lacks a right; "": nothing."""
    if code not in (1, 78):
        return f"exit code {code}: {output}"
    lines = output.splitlines()
    errors = [
        line for line in lines if line.startswith("grove: ")
    ] or lines  # topics check lists all there is
    is_clear = all(map(CLEAR.fullmatch, errors)) and (len(errors) == 1 or errors is lines)
    return "" if errors and is_clear and "Traceback" not in output else f"no clear line: {output}"


@dataclass
class Case:
    """A command of an operator as it is run here."""

    command: str
    arguments: tuple[str, ...] = ()
    prefix: str = ""
    also: tuple[str, str] | None = None  # another entry of the table, and the prefix that it is for


@pytest.fixture(scope="module")
def clerk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clerk]:
    directory = tmp_path_factory.mktemp("rights")
    with pytest.MonkeyPatch.context() as monkeypatch, secured_broker(monkeypatch, directory) as broker:
        settings = {"GROVE_MODEL_SPEC": orjson.dumps(SPEC).decode()}
        place = Installation(broker.bootstrap_servers, "rights.", 2, directory, settings, "streamapp worker")
        broker.add_users(["inspection", *(user_of(command) for command in RIGHTS)])
        yield Clerk(broker, place)


def test_the_stream_runs_with_its_rights_in_both_guarantees(clerk: Clerk, tmp_path: Path) -> None:
    for case in (SEND, ANSWER, ANSWER_FEATURES, Case("worker"), web(tmp_path)):
        assert denied(*clerk.run(case)) == "", case
    learn(clerk, "exactly_once", "at_least_once")
    place = clerk.place
    assert len(place.read(place.names.predictions)) == 2 * 2 * ROWS
    assert {label["annotator"] for label in place.read(place.names.labels) if "annotator" in label} == {
        "oracle"
    }
    for topic in (place.names.journal, place.names.snapshots, place.names.dead_letters):
        assert list(place.raw(topic)), topic


def learn(clerk: Clerk, *guarantees: str) -> None:
    """Let models come into being, or learn on, by a worker, replays and an oracle that have their rights."""
    place = clerk.place
    for command in ("worker", "replay", "oracle", "oracle --features"):
        clerk.grant(command, RIGHTS[command])
    for guarantee in guarantees or ("exactly_once",):
        settings = clerk.environment("worker", place.prefix) | {"GROVE_PROCESSING_GUARANTEE": guarantee}
        with place.worker("w", fresh=False, **settings) as worker:
            worker.wait_until_ready()
            for case in (SEND, SEND_LABELS, ANSWER, ANSWER_FEATURES):
                code, output = clerk.run(case)
                assert code == 0, (case, output)
            producer = place.producer()
            producer.produce(place.names.instances, b"no JSON", b"shop", partition_of(b"shop", 2))
            assert producer.flush(PATIENCE) == 0
            place.wait_for_lag_0(alive=[worker])
            worker.signal(signal.SIGUSR2)  # which leaves the group: operators find it without members
            assert worker.wait() == 0, worker.log
        assert "must allow" not in worker.log, worker.log
        assert "cannot be compared" not in worker.log, worker.log


def test_people_answer_with_the_rights_of_web(clerk: Clerk, tmp_path: Path) -> None:
    learn(clerk)
    clerk.grant("web", RIGHTS["web"])
    kafka = {
        "bootstrap.servers": clerk.broker.clients,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(clerk.broker.authority),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "web",
        "sasl.password": PASSWORD,
    }
    with Threads(kafka, clerk.place.names, tmp_path / "web.sqlite", Terms(undo_ms=0)) as queue:
        card = card_of(queue, "ann")
        queue.actions.answer("ann", card.number, None, now())
        wait_until(lambda: queue.counts(now()).sent == 1, PATIENCE, lambda: str(queue.counts(now())))


def test_a_label_tool_is_bridged_with_the_rights_of_its_bridge(clerk: Clerk, tmp_path: Path) -> None:
    learn(clerk)
    place, command = clerk.place, "bridge label-studio"
    asked = len({request["request_id"] for request in place.read(place.names.label_requests)})
    with Stub() as stub:
        options = (f"--url={stub.url}", "--project=7", "--sweep-seconds=1", f"--state={tmp_path / 'sent'}")
        token = {"GROVE_LABEL_STUDIO_TOKEN": LEGACY}
        for left_out in RIGHTS[command]:
            clerk.broker.revoke_everything()
            clerk.grant(command, [right for right in RIGHTS[command] if right != left_out])
            assert denied(*clerk.run(Case(command, options), token)) == "", left_out
        assert stub.tasks == []
        clerk.grant(command, RIGHTS[command])
        with clerk.running(Case(command, options), token) as bridge:
            wait_until(lambda: len(stub.tasks) == asked, PATIENCE, lambda: f"{len(stub.tasks)}; {bridge()}")
            stub.annotate(stub.tasks[0], ["good"])
            wait_until(lambda: bool(tool_labels(place)), PATIENCE, bridge)
    assert [label["id"] for label in tool_labels(place)] == [stub.tasks[0]["data"]["grove_instance_id"]]


def tool_labels(place: Installation) -> list[Any]:
    """Return the labels that came from the label tool."""
    all_labels = place.read(place.names.labels)
    return [label for label in all_labels if str(label.get("annotator")).startswith("label-studio:")]


@pytest.mark.nightly
def test_the_demo_runs_on_a_broker_of_others_with_its_rights(clerk: Clerk) -> None:
    case = Case("demo", ("--data=gen:sea?n=200", "--records=200", "--json"))
    assert denied(*clerk.run(case)) == ""
    clerk.grant("demo", RIGHTS["demo"], "grove.demo-", "grove-demo-")
    code, output = clerk.run(case)
    assert code == 0, output
    summary = orjson.loads(output[output.index("{") :])
    assert summary["predictions"] == summary["instances"] == 600
    assert summary["labels_learned"] > 0
    topics = AdminClient({"bootstrap.servers": clerk.broker.bootstrap_servers}).list_topics(timeout=PATIENCE)
    assert not [name for name in topics.topics if name.startswith("grove.demo-")], "it leaves nothing behind"


@pytest.mark.nightly
def test_pages_on_an_installation_are_answered_with_the_rights_of_their_commands(clerk: Clerk) -> None:
    learn(clerk)
    place, user = clerk.place, "inspection"
    partition = partition_of(b"shop", 2)
    records = [record for record in place.raw(place.names.instances) if record.partition() == partition]
    end = len(records)
    of_shop = [at.offset() for at in records if at.key() == b"shop" and b'"features"' in at.value()]
    producer = place.producer()
    producer.produce(place.names.instances, b"{}", b"shop", partition)
    assert producer.flush(PATIENCE) == 0
    given: dict[str, dict[str, Any]] = {
        "model": {"key": "shop"},
        "explanation": {"key": "shop", "at": f"{partition}:{end - 10}"},
        "path": {"key": "shop", "at": f"{partition}:{of_shop[-1]}"},
        "differences": {"first": "shop", "second": "other"},
        "partitions": {},
        "dead-letters": {"limit": 5},
        "dead-letter": {"at": f"{partition}:0"},
        "replay": {"at": f"{partition}:0", "dry_run": False},
        "skip": {"at": f"{partition}:{end}", "source": "instances", "dry_run": False},
    }
    assert given.keys() == QUESTIONS.keys()
    for ask, members in given.items():
        clerk.broker.revoke_everything()
        clerk.grant(user, RIGHTS["web"])
        # Each asks a process of its own: one that was answered before does not look for all of it again.
        with closing(Inspector(os.environ | clerk.environment(user, place.prefix))) as inspector:
            with pytest.raises(InspectionError) as refused:
                inspector.do(ask, **members)
            assert CLEAR.fullmatch(str(refused.value)), (ask, str(refused.value))
            clerk.grant(user, RIGHTS[QUESTIONS[ask]])
            assert inspector.do(ask, **members) is not None, ask


def test_operators_do_their_work_with_their_rights_and_no_others(clerk: Clerk, tmp_path: Path) -> None:
    learn(clerk)
    wrong: dict[str, str] = {}
    for case in operators(clerk.place, tmp_path):
        if problem := denied(*clerk.run(case)):
            wrong[f"{case.command}, without rights"] = problem
        clerk.grant(case.command, RIGHTS[case.command], case.prefix)
        clerk.grant_also(case)
        code, output = clerk.run(case)
        if code:
            wrong[case.command] = f"exit code {code}: {output}"
    assert wrong == {}, "\n".join(f"--- {name}\n{text}" for name, text in wrong.items())


@pytest.mark.nightly
def test_no_right_of_the_table_is_more_than_is_needed(clerk: Clerk, tmp_path: Path) -> None:
    """Each command without one of its rights ends with a line that names it."""
    learn(clerk)
    wrong: dict[str, str] = {}
    for case in operators(clerk.place, tmp_path):
        rights = RIGHTS[case.command]
        for right in rights:
            for operation in () if right.without or clerk.is_given_by(case, right) else right.operations:
                others = [other for other in rights if other != right]
                left = tuple(name for name in right.operations if name != operation)
                clerk.broker.revoke_everything()
                clerk.grant(case.command, [*others, replace(right, operations=left)], case.prefix)
                clerk.grant_also(case)
                if problem := denied(*clerk.run(case)):
                    wrong[f"{case.command}, without {operation} on {right.kind} {right.name}"] = problem
        clerk.broker.revoke_everything()
        clerk.grant(case.command, rights, case.prefix)
        clerk.grant_also(case)
        code, output = clerk.run(case)
        assert code == 0, (case, output)
    assert wrong == {}, "\n".join(f"--- {name}\n{text}" for name, text in wrong.items())


SEND = Case("replay", (DATA, "--labels=none", "--key=shop"))
SEND_LABELS = Case("replay", (DATA, "--labels=apart", "--key=other"))
ANSWER = Case("oracle", (DATA, "--limit=100"))
ANSWER_FEATURES = Case("oracle --features", (DATA, "--idle-seconds=1"))


def web(directory: Path) -> Case:
    return Case("web", ("--port=0", f"--state={directory / 'web.sqlite'}"))


def operators(place: Installation, directory: Path) -> list[Case]:
    file = directory / "model.grove"
    partition, new = partition_of(b"shop", 2), f"moved-{place.prefix}"
    fresh = f"new-{uuid.uuid4().hex[:8]}."
    unprocessed = len(
        [message for message in place.raw(place.names.instances) if message.partition() == partition]
    )
    producer = place.producer()
    producer.produce(place.names.instances, b"{}", b"shop", partition)
    assert producer.flush(PATIENCE) == 0
    return [
        Case("topics create", prefix=fresh),
        Case(
            "replay --max-outstanding",
            ("1000", DATA, "--labels=none", "--records=10", "--key=shop"),
            prefix=fresh,
        ),
        Case(
            "replay --from-topic",
            (place.names.instances, f"--from-topic={place.names.labels}", "--json"),
            prefix=fresh,
            also=("replay --from-topic, other topics", place.prefix),
        ),
        Case("topics check"),
        Case("topics describe"),
        Case("journal show", (f"--partition={partition}",)),
        Case("models list"),
        Case("models rebuild", ("--key=shop", f"--at={partition}:{unprocessed - 10}")),
        Case("whatif", ("--key=shop", "--spec=naive-bayes")),
        Case("dlq skip", (f"{partition}:{unprocessed}", "--yes")),
        Case("migrate", (f"--to-prefix={new}", "--leave-behind"), also=("migrate, new topics", new)),
        Case("models show", ("shop",)),
        Case("models export", ("shop", f"--to={file}")),
        Case("models import", (str(file), "--key=copy")),
        Case("dlq list"),
        Case("dlq show", (f"{partition}:0",)),
        Case("dlq replay", ("--yes",)),
        Case("people list"),
        Case("people agreement"),
        Case("models restore", (f"--partition={partition}", "--yes")),
        Case("models reset", (f"--partition={1 - partition}", "--yes")),
    ]
