"""Migration outcome: the result for people and programs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from streamapp.tools.migration.advice import stays_in_words, unprocessed_in_words
from streamapp.tools.migration.migration_course import Course
from topics.clients.admin import Likeness


def document_of(course: Course, obstacles: list[str], created: list[str], steps: list[str]) -> dict[str, Any]:
    """Return the result for JSON."""
    old, new, report = course.old, course.new, course.migration.report
    return {
        "from": {"prefix": old.names.prefix, "partitions": old.partitions, "group": old.group},
        "to": {"prefix": new.names.prefix, "partitions": new.partitions, "group": new.group},
        "topics": {topic.name: _state(topic, created) for topic in course.topics},
        "models": report.models,
        "awaited": report.awaited,
        "already": report.already,
        "sent": report.sent,
        "bytes": report.bytes,
        "verified": report.verified,
        "others": report.others,
        "stays": report.stays._asdict(),
        "unprocessed": dict(report.unprocessed),
        "obstacles": obstacles,
        "left_to_do": steps,
    }


def as_text(course: Course, obstacles: list[str], created: list[str], steps: list[str]) -> str:
    """Return the result as lines of text."""
    old, new, report = course.old, course.new, course.migration.report
    states = Counter(_state(topic, created) for topic in course.topics)
    lines = [
        f"from       {old.names.prefix!r}: {old.partitions} partitions, group {old.group}",
        f"to         {new.names.prefix!r}: {new.partitions} partitions, group {new.group}",
        f"topics     {', '.join(f'{n} {what}' for what, n in states.items())}",
        f"models     {report.models:,}, and {report.awaited:,} keys that await their first instance",
        f"sent       {report.sent:,} ({report.bytes:,} bytes), {report.already:,} were there already, "
        f"{report.verified:,} verified",
        f"stays      {stays_in_words(report) or 'nothing'}",
        f"unread     {unprocessed_in_words(report.unprocessed) or 'nothing'}",
    ]
    if report.others:
        lines.append(f"others     {len(report.others)} models of the new place are not from the old place")
    lines += [f"first      {obstacle}" for obstacle in obstacles]
    lines += [f"then {number:>3}   {step}" for number, step in enumerate(steps, 1)]
    return "\n".join(lines)


def _state(topic: Likeness, created: list[str]) -> str:
    if topic.name in created:
        return "created"
    return "there already" if topic.exists else "to be created"
