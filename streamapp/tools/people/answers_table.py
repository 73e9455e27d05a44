"""Answers table: all answers of annotators with the label that came of them, as CSV or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from streamapp.people.annotator_answers import AGREEMENT, AnswerReader
from streamapp.web.queue.review.reviewed_outcomes import REVIEW
from topics.columns.records import AuditEntry

Format = Literal["csv", "parquet"]
COLUMNS: Final = pa.schema(
    [
        pa.field("annotator", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("instance_id", pa.string(), nullable=False),
        pa.field("request_id", pa.string(), nullable=False),
        pa.field("label", pa.string()),
        pa.field("at", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("seconds", pa.float64()),
        pa.field("gold", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("comment", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("outcome_weight", pa.float64()),
        pa.field("reviewer", pa.string()),
        pa.field("reviewed_label", pa.string()),
    ]
)
"""Columns of the table; null: the answer has no such member, or the label is declined."""
FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")


class _Decision(NamedTuple):
    """What became of a request: the result of several answers, and a reviewer's decision."""

    outcome: str | None = None
    weight: float | None = None
    reviewer: str | None = None
    reviewed_label: str | None = None
    reviewed_ms: int = -1


def rows_of(entries: Iterable[AuditEntry]) -> Iterator[dict[str, Any]]:
    """Return a row for each answer that was not taken back, in the order of the entries.

    All answers are in memory: an outcome and a decision come after the answers that they are about.
    """
    reader, answers = AnswerReader(), dict[tuple[str, str, str, str, int], Any]()
    decisions: dict[tuple[str, str, str], _Decision] = {}
    for entry in entries:
        _decide(decisions, entry)
        change = reader.take(entry)
        if change is None:
            continue
        answer = change.answer
        place = (answer.annotator, answer.key, answer.instance_id, answer.request_id, answer.at_ms)
        if change.taken_back:
            answers.pop(place, None)
        else:
            answers[place] = answer
    for answer in answers.values():
        decision = decisions.get((answer.key, answer.instance_id, answer.request_id), _Decision())
        members = answer._asdict()
        at = datetime.fromtimestamp(members.pop("at_ms") / 1000, UTC)
        yield members | {
            "at": at,
            "outcome": decision.outcome,
            "outcome_weight": decision.weight,
            "reviewer": decision.reviewer,
            "reviewed_label": decision.reviewed_label,
        }


def _decide(decisions: dict[tuple[str, str, str], _Decision], entry: AuditEntry) -> None:
    """Note the outcome or the review of an entry, if it is one; the newest review counts."""
    if entry.key is None or entry.instance_id is None:
        return
    place = (entry.key, entry.instance_id, entry.request_id or "")
    decision = decisions.get(place, _Decision())
    if entry.user == AGREEMENT and entry.action == "outcome":
        decisions[place] = decision._replace(outcome=entry.label, weight=entry.weight)
    elif entry.action == REVIEW and entry.at_ms > decision.reviewed_ms:
        decisions[place] = decision._replace(
            reviewer=entry.user, reviewed_label=entry.label, reviewed_ms=entry.at_ms
        )


def write_csv(rows: Iterable[dict[str, Any]], file: TextIO) -> int:
    """Write rows with a head, and return their number.

    A text that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    writer = csv.DictWriter(file, COLUMNS.names, lineterminator="\n")
    writer.writeheader()
    count = 0
    for row in rows:
        count += 1
        cells = {name: _cell(value) for name, value in row.items()}
        writer.writerow(cells | {"at": row["at"].isoformat(timespec="milliseconds")})
    return count


def write_parquet(rows: Iterable[dict[str, Any]], path: Path) -> int:
    """Write rows to a file, and return their number."""
    table = pa.Table.from_pylist(list(rows), schema=COLUMNS)
    pq.write_table(table, path)
    return int(table.num_rows)


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value
