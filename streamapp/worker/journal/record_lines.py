"""Journal records for people and programs: one line each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamapp.worker.journal.entry import Entry, Manifest, Record, Reset, Skip, Step
from streamapp.worker.task.sources import SOURCES, named


def as_json(partition: int, offset: int, record: Record) -> dict[str, Any]:
    """Return a record as a JSON object."""
    head: dict[str, Any] = {
        "partition": partition,
        "offset": offset,
        "kind": _KINDS[type(record)],
        "incarnation": record.incarnation,
    }
    if isinstance(record, Entry):
        return head | {
            "before": named(record.before),
            "after": named(record.after),
            "steps": [_step(step) for step in record.steps],
        }
    if isinstance(record, Manifest):
        return head | {
            "sequence": record.sequence,
            "positions": named(record.positions),
            "journal_from": record.start,
            "units": record.units,
            "bytes": record.size,
            "state_version": record.state_version,
        }
    if isinstance(record, Skip):
        return head | {"source": record.source, "skip": record.offset}
    return head | {"positions": named(record.positions)}


def as_text(body: dict[str, Any]) -> str:
    """Return the line of a record's JSON object."""
    head = f"{body['partition']:>4} {body['offset']:>10}  {body['kind']:<8} {body['incarnation']:>4}"
    if body["kind"] == "commit":
        return f"{head}  {'  '.join(_moved(body))}"
    if body["kind"] == "skip":
        return f"{head}  {body['source']} {body['skip']} is to become a dead letter"
    where = " ".join(f"{source}={at}" for source, at in body["positions"].items())
    if body["kind"] == "reset":
        return f"{head}  new models at {where}"
    return f"{head}.{body['sequence']}  {body['units']:,} units, {body['bytes']:,} bytes, of {where}"


def _moved(body: dict[str, Any]) -> Iterator[str]:
    for source in SOURCES:
        before, after = body["before"].get(source, 0), body["after"].get(source, 0)
        if after != before:
            yield f"{source} {before}…{after}"
    yield f"({len(body['steps'])} steps)"


def _step(step: Step) -> dict[str, Any]:
    body: dict[str, Any] = {"source": step.source, "to": step.to}
    if step.skipped:
        body["skipped"] = step.skipped
    if step.refused:
        body["refused"] = step.refused
    if step.unread:
        body["unread"] = step.unread
    if step.dead:
        body["dead"] = step.dead
    if step.records is not None:
        body["controls"] = [
            None if key is None else key.decode("utf-8", "replace") for key in step.records.keys
        ]
    return body


_KINDS: dict[type[Record], str] = {Entry: "commit", Manifest: "snapshot", Reset: "reset", Skip: "skip"}
