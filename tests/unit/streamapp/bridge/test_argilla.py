"""Argilla's side of the bridge: its client, records and responses, signed webhooks; over real sockets."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest

from streamapp.bridge.argilla import Argilla, ArgillaError
from streamapp.bridge.hook_formats import ArgillaHooks
from streamapp.bridge.label_tool import Given
from streamapp.bridge.webhooks import Webhooks
from streamapp.errors import UsageError
from streamapp.web.queue.cards import Request
from tests.argilla_stub import KEY, SECRET, USER, ArgillaStub, signed

ASKED = Request(
    partition=3,
    key="shop/ü",
    request_id="r-1",
    instance_id="i-1",
    asked_ms=1_700_000_000_000,
    expires_ms=-1,
    utility=0.75,
    prediction="good",
    strategy="random",
    features={"amount": 12.5, "country": "<b>D|E</b>", "note": "a\nb", "none": None},
    shares={"good": 0.8, "fraud": 0.2},
)


@pytest.fixture
def stub() -> Iterator[ArgillaStub]:
    with ArgillaStub() as server:
        yield server


def tool(stub: ArgillaStub, **options: Any) -> Argilla:
    made = Argilla(stub.url, KEY, **{"dataset": "shop", **options})
    assert made.check() == "shop"
    return made


def test_requests_become_records_once_and_are_found_again_page_by_page(stub: ArgillaStub) -> None:
    argilla = tool(stub)
    argilla.add_requests([replace(ASKED, request_id=f"r-{n}") for n in range(250)])
    argilla.add_requests([ASKED])
    assert [argilla.request_of(record) for record in argilla.tasks()] == [f"r-{n}" for n in range(250)]
    assert stub.writes == 4, "at most 100 records in a request"


@pytest.mark.parametrize(
    ("is_markdown", "text"),
    [
        (False, "amount: 12.5\ncountry: <b>D|E</b>\nnote: a\nb\nnone: –"),
        (
            True,
            "| feature | value |\n|---|---|\n| amount | 12.5 |\n| country | \\<b\\>D\\|E\\</b\\> |\n"
            "| note | a b |\n| none | – |",
        ),
    ],
)
def test_a_record_has_the_features_and_the_guess(stub: ArgillaStub, is_markdown: bool, text: str) -> None:
    stub.fields[0]["settings"] = {"type": "text", "use_markdown": is_markdown}
    argilla = tool(stub)
    argilla.add_requests([ASKED, replace(ASKED, request_id="r-2", prediction="unknown to the question")])
    first, second = argilla.tasks()
    assert first["fields"] == {"record": text}
    assert first["metadata"]["grove_utility"] == 0.75
    assert first["suggestions"] == [{"question_id": "q-1", "value": "good", "agent": "grove", "score": 0.8}]
    assert "suggestions" not in second, "Argilla refuses a suggestion that is no option"


def test_responses_are_labels_and_drafts_are_none(stub: ArgillaStub) -> None:
    argilla = tool(stub)
    argilla.add_requests([ASKED])
    (record,) = stub.records.values()
    responses = [
        stub.respond(record, "fraud"),
        stub.respond(record, None, "discarded"),
        stub.respond(record, "fraud", "draft"),
        stub.respond(record, None),
    ]
    (kept,) = argilla.tasks()
    place = "shop/ü".encode(), 3, "i-1"
    assert [argilla.given_by(kept, response) for response in argilla.annotations_of(kept)] == [
        Given("a-0", *place, "fraud", f"argilla:{USER}"),
        Given("a-1", *place, None, f"argilla:{USER}"),
        None,
        None,
    ]
    for foreign in ({"metadata": None}, {"metadata": {"grove_key": "k"}}, {}):
        assert argilla.given_by(foreign, responses[0]) is None
    changes: tuple[dict[str, Any], ...] = (
        {"id": 7},
        {"id": "x" * 200},
        {"id": "\ud800"},
        {"values": []},
        {"values": {"label": "fraud"}},
    )
    for change in changes:
        assert argilla.given_by(kept, responses[0] | change) is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"dataset": "none"}, "--dataset none must be the name or id of a dataset"),
        ({"question": "x"}, "--question x must be one of the questions label"),
        ({"question": "stars"}, "--question stars must have the type label_selection, it has rating"),
        ({"field": "x"}, "--field x must be one of the fields record"),
        ({"workspace": "nowhere"}, "--workspace nowhere must be one of other, team"),
        ({"dataset": "twice"}, "2 workspaces have a dataset twice; name one: --workspace"),
        ({"dataset": "draft"}, "dataset draft must be published, its status is draft"),
        ({"dataset": "strict"}, "dataset strict must allow extra metadata"),
    ],
)
def test_a_dataset_that_cannot_be_used_is_refused_with_the_remedy(
    stub: ArgillaStub, change: dict[str, str], problem: str
) -> None:
    (shop,) = stub.datasets
    stub.questions.append({"id": "q-2", "name": "stars", "settings": {"type": "rating"}})
    stub.datasets += [
        shop | {"id": "d-2", "name": "twice"},
        shop | {"id": "d-3", "name": "twice", "workspace_id": "w-2"},
        shop | {"id": "d-4", "name": "draft", "status": "draft"},
        shop | {"id": "d-5", "name": "strict", "allow_extra_metadata": False},
    ]
    with pytest.raises(ArgillaError) as raised:
        tool(stub, **change)
    assert problem in str(raised.value)
    assert not raised.value.passes
    tool(stub, dataset="d-1", workspace="team")


def test_a_wrong_key_is_refused_and_hidden(stub: ArgillaStub) -> None:
    with pytest.raises(ArgillaError, match="401 Unauthorized.*GROVE_ARGILLA_API_KEY") as raised:
        Argilla(stub.url, "no such key at all", "shop").check()
    assert "no such key at all" not in str(raised.value)


def body_of(record: dict[str, Any], response: dict[str, Any], event: str = "response.created") -> bytes:
    data = {**response, "user": {"id": response["user_id"], "username": "ann"}, "record": record}
    del data["user_id"]
    return json.dumps(
        {"type": event, "version": 1, "timestamp": "2026-11-26T18:31:02Z", "data": data}
    ).encode()


def test_only_signed_webhooks_bring_responses(stub: ArgillaStub) -> None:
    argilla = tool(stub)
    argilla.add_requests([ASKED])
    (record,) = stub.records.values()
    body = body_of(record, stub.respond(record, "fraud"))
    given: list[Given | None] = []

    def take(task: Any, responses: Any) -> int:
        given.extend(argilla.given_by(task, response) for response in responses)
        return 1

    with Webhooks(("127.0.0.1", 0), SECRET, take, hooks=ArgillaHooks()) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def post(data: bytes, headers: dict[str, str]) -> int:
            url = f"http://127.0.0.1:{server.server_address[1]}/"
            try:
                with urlopen(HttpRequest(url, data, headers), timeout=60) as answer:
                    return int(answer.status)
            except HTTPError as error:
                return error.code

        now = int(time.time())
        right = signed(body, now)
        other = {**right, "webhook-signature": signed(body, now, SECRET[:-3] + "Q==")["webhook-signature"]}
        refused = [
            {},
            other,
            {**right, "webhook-id": "msg_2"},
            {**right, "webhook-timestamp": str(now + 1)},
            {**right, "webhook-timestamp": "now"},
            signed(body, now - 400),
            signed(body, now + 400),
        ]
        assert [post(body, headers) for headers in refused] == [401] * len(refused)
        assert post(body + b" ", right) == 401, "another body"
        assert given == []
        rotated = {**right, "webhook-signature": f"v1a,abc v1,wrong {right['webhook-signature']}"}
        assert post(body, right) == post(body, rotated) == 200
        ping = b'{"type": "ping", "version": 1, "data": {"agent": "argilla-server"}}'
        assert post(ping, signed(ping, now)) == 200
        server.shutdown()
    assert given == [Given("a-0", "shop/ü".encode(), 3, "i-1", "fraud", f"argilla:{USER}")] * 2


def test_a_signature_is_the_one_of_standard_webhooks() -> None:
    """The value comes from `standardwebhooks` 1.1.0, with which Argilla signs."""
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": "1795717862",
        "webhook-signature": "v1,laP/1tLE9QJ/68p0EkHYmEF/pvEGKlinWkDYc+lNh2Y=",
    }
    hooks = ArgillaHooks()
    assert hooks.refuses_body(SECRET, headers, b'{"type":"ping"}') == ""
    assert hooks.refuses_body(SECRET.removeprefix("whsec_"), headers, b'{"type":"ping"}') == ""
    assert hooks.refuses_body(SECRET, headers, b'{"type":"pong"}') != ""


@pytest.mark.parametrize("secret", ["not base64!", "whsec_", "whsec_ü"])
def test_a_text_that_is_no_secret_is_refused(secret: str) -> None:
    with pytest.raises(UsageError, match="GROVE_ARGILLA_WEBHOOK_SECRET must be the secret"):
        ArgillaHooks().check_secret(secret)
