"""Label Studio's side of the bridge: its client, tasks and annotations, webhooks; over real sockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest

from streamapp.bridge.label_studio import LabelStudio, LabelStudioError
from streamapp.bridge.label_tool import Given
from streamapp.bridge.tasks import Choice, given_by, task_of
from streamapp.bridge.webhooks import Webhooks
from streamapp.errors import StreamappError
from streamapp.web.queue.cards import Request
from tests.label_studio_stub import LEGACY, PERSONAL, Stub
from topics.errors import BrokerError

ASKED = Request(
    partition=3,
    key="shop/ü",
    request_id="r-1",
    instance_id="i-1",
    asked_ms=1_700_000_000_000,
    expires_ms=-1,
    utility=0.75,
    prediction="yes",
    strategy="random",
    features={"amount": 12.5, "country": "<b>DE</b>", "none": None},
)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as server:
        yield server


@pytest.mark.parametrize("token", [LEGACY, PERSONAL])
def test_tasks_go_out_and_are_found_again_page_by_page(stub: Stub, token: str) -> None:
    tool = LabelStudio(stub.url + "/", token, 7)
    assert tool.check() == "Sales"
    assert list(tool.tasks()) == []
    assert tool.add([{"data": {"n": n}} for n in range(200)]) == 200
    assert [task["data"]["n"] for task in tool.tasks()] == list(range(200))


def test_an_access_token_that_has_expired_is_renewed(stub: Stub) -> None:
    tool = LabelStudio(stub.url, PERSONAL, 7)
    tool.check()
    stub.access += 1
    assert tool.check() == "Sales"
    assert stub.requests.count("POST /api/token/refresh") == 2


@pytest.mark.parametrize("token", ["wrong", "w.r.ong"])
def test_what_is_refused_says_what_to_do_and_hides_the_token(stub: Stub, token: str) -> None:
    with pytest.raises(LabelStudioError, match="401 Unauthorized.*GROVE_LABEL_STUDIO_TOKEN") as raised:
        LabelStudio(stub.url, token, 7).check()
    assert not raised.value.passes
    assert token not in str(raised.value)
    with pytest.raises(LabelStudioError, match="/api/projects/8: 404 Not Found"):
        LabelStudio(stub.url, LEGACY, 8).check()


def test_what_may_pass_is_told_from_what_will_not(stub: Stub) -> None:
    stub.failures = [503, 400]
    tool = LabelStudio(stub.url, LEGACY, 7)
    for passes in (True, False):
        with pytest.raises(LabelStudioError) as raised:
            tool.add([{"data": {}}])
        assert raised.value.passes is passes
    stub.__exit__()
    with pytest.raises(LabelStudioError, match="does not answer") as raised:
        tool.check()
    assert raised.value.passes


@pytest.mark.parametrize("url", ["ftp://x", "localhost:8080", "http://me:secret@x", "http://x?token=secret"])
def test_an_address_that_is_none_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(StreamappError, match="--url must be") as raised:
        LabelStudio(url, LEGACY, 7)
    assert "secret" not in str(raised.value)


def test_a_request_becomes_a_task_and_its_annotation_a_label(stub: Stub) -> None:
    task = task_of(ASKED, Choice("kind", "row"))
    assert task["data"]["grove_request_id"] == "r-1"
    assert task["data"]["record"] == [
        {"feature": "amount", "value": 12.5},
        {"feature": "country", "value": "<b>DE</b>"},
        {"feature": "none", "value": None},
    ]
    (guess,) = task["predictions"]
    assert (guess["score"], guess["result"][0]["value"]) == (0.25, {"choices": ["yes"]})
    assert (guess["result"][0]["from_name"], guess["result"][0]["to_name"]) == ("kind", "row")
    LabelStudio(stub.url, LEGACY, 7).add([task])
    (kept,) = stub.tasks
    answers = [stub.annotate(kept, ["no"]), stub.annotate(kept, [], cancelled=True)]
    who = "label-studio:1"
    assert [given_by(kept, answer) for answer in answers] == [
        Given(1000, "shop/ü".encode(), 3, "i-1", "no", who),
        Given(1001, "shop/ü".encode(), 3, "i-1", None, who),
    ]
    named = given_by(kept, answers[0] | {"completed_by": {"id": 1, "email": "ann@example.com"}})
    assert named is not None
    assert named.annotator == "label-studio:ann@example.com", "who is told more says more"
    for nothing in ([], ["yes", "no"], [""], [7]):
        assert given_by(kept, stub.annotate(kept, nothing)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "task",
    [{}, {"data": "text"}, {"data": {"grove_request_id": 1, "grove_key": "a", "grove_instance_id": "b"}}],
)
def test_tasks_of_others_are_left_alone(task: dict[str, Any]) -> None:
    annotation = {"id": 1, "result": [{"type": "choices", "value": {"choices": ["yes"]}}]}
    assert given_by(task, annotation) is None


class Hook:
    """A bridge's end that webhooks call."""

    def __init__(self) -> None:
        self.taken: list[tuple[Any, list[Any]]] = []
        self.fails = False

    def take(self, task: Any, annotations: Any) -> int:
        if self.fails:
            message = "the broker is away"
            raise BrokerError(message)
        self.taken.append((task, list(annotations)))
        return len(self.taken[-1][1])


def post(server: Webhooks, body: bytes, **headers: str) -> tuple[int, str]:
    request = HttpRequest(f"http://127.0.0.1:{server.server_address[1]}/", body, headers)
    try:
        with urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_webhooks_bring_annotations_of_those_who_know_the_secret() -> None:
    hook = Hook()
    body = {"action": "ANNOTATION_CREATED", "task": {"id": 1, "data": {}}, "annotation": {"id": 5}}
    with Webhooks(("127.0.0.1", 0), "Bearer s3cret", hook.take) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        data = json.dumps(body).encode()
        assert post(server, data)[0] == 401
        assert post(server, data, Authorization="Bearer other")[0] == 401
        assert hook.taken == []
        known = {"Authorization": "Bearer s3cret"}
        assert post(server, data, **known) == (200, '{"detail": "1 labels sent"}')
        assert hook.taken == [(body["task"], [body["annotation"]])]
        assert post(server, b"{", **known)[0] == 400
        assert post(server, b"[]", **known)[0] == 200
        assert post(server, json.dumps(body | {"action": "TASKS_CREATED"}).encode(), **known)[0] == 200
        assert len(hook.taken) == 1
        hook.fails = True
        assert post(server, data, **known)[0] == 503
        server.shutdown()
