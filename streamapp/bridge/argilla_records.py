"""Argilla's records: a label request as a record with a suggestion, a response as a label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from streamapp.bridge.label_tool import (
    ANNOTATOR_MAX,
    Annotation,
    Given,
    Task,
    is_text,
    members_of,
    place_of,
)
from streamapp.web.queue.cards import Cell, Request

AGENT: Final = "grove"
ID_MAX: Final = 100  # characters of the id of a response


@dataclass(frozen=True, slots=True)
class Form:
    """The field and the question of a dataset that requests use."""

    field: str
    is_markdown: bool
    question: str
    question_id: str
    classes: frozenset[str]  # the question's options


def record_of(request: Request, form: Form) -> dict[str, Any]:
    """Return the record of a request: its features as a text, the model's prediction as a suggestion.

    The id of the request is the record's external id, so that Argilla keeps one record of it.
    """
    metadata = members_of(request)
    if not math.isnan(request.utility):
        metadata["grove_utility"] = request.utility
    record: dict[str, Any] = {
        "external_id": request.request_id,
        "fields": {form.field: _text(request.features, is_markdown=form.is_markdown)},
        "metadata": metadata,
    }
    if request.prediction in form.classes:
        suggestion = {"question_id": form.question_id, "value": request.prediction, "agent": AGENT}
        share = request.shares.get(str(request.prediction))
        record["suggestions"] = [suggestion if share is None else suggestion | {"score": share}]
    return record


def given_by(record: Task, response: Annotation, question: str) -> Given | None:
    """Return the label of a response; None: the record is not ours, or the response is a draft.

    A discarded response is a declined label. `record` may come from the API or from a webhook.
    """
    place, number, status = place_of(record.get("metadata")), response.get("id"), response.get("status")
    user = response.get("user_id")
    if user is None and isinstance(response.get("user"), dict):  # in a webhook
        user = response["user"].get("id")
    if place is None or not isinstance(number, str) or not 0 < len(number) <= ID_MAX:
        return None
    label = None
    if status == "submitted":
        values = response.get("values")
        answer = values.get(question) if isinstance(values, dict) else None
        label = answer.get("value") if isinstance(answer, dict) else None
        if not isinstance(label, str) or not label:
            return None
    elif status != "discarded":
        return None
    annotator = f"argilla:{str(user)[:ANNOTATOR_MAX] if user is not None else '?'}"
    if not all(map(is_text, (number, annotator, label or ""))):
        return None
    return Given(number, *place, label, annotator)


def _text(features: dict[str, Cell], *, is_markdown: bool) -> str:
    """Return features as lines, or as a table of Markdown."""
    rows = [(_plain(name), _plain(value)) for name, value in features.items()]
    if not rows:
        return "(no features)"
    if not is_markdown:
        return "\n".join(f"{name}: {value}" for name, value in rows)
    cells = [f"| {_cell(name)} | {_cell(value)} |" for name, value in rows]
    return "\n".join(["| feature | value |", "|---|---|", *cells])


def _plain(value: Cell) -> str:
    if value is None:
        return "–"
    text = value if isinstance(value, str) else f"{value:.12g}"
    return text.replace("\0", "\N{SYMBOL FOR NULL}")  # PostgreSQL keeps no NUL


def _cell(text: str) -> str:
    """Escape a text for a cell of a table."""
    for special in "\\`*_{}[]<>()#+-!|~&":
        text = text.replace(special, f"\\{special}")
    return text.replace("\r", " ").replace("\n", " ")
