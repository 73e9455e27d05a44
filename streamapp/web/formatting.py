"""Words: numbers, times and events as pages write them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

TEXT_MAX: Final = 40
"""Characters of a name in a table or drawing, at most."""


def share(value: object) -> str:
    """Return a share in per cent; a dash for a value that is not a number, which a topic may contain.

    >>> share(0.9312), share(None), share("<b>")
    ('93.1 %', '–', '–')
    """
    return f"{value * 100:.1f} %" if isinstance(value, int | float) else "–"


def number(value: object) -> str:
    """Return a count or a measure; a dash for a value that is not a number.

    >>> number(12345), number(0.123456), number(None), number([1])
    ('12,345', '0.1235', '–', '–')
    """
    if not isinstance(value, int | float):
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"


def moment(time_ms: int) -> str:
    """Return a time, UTC.

    >>> moment(1_700_000_000_000)
    '2023-11-14 22:13:20'
    """
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(time_ms)


def span(ms: int) -> str:
    """Return a time in its largest unit.

    >>> span(1500), span(90_000), span(7_200_000), span(200_000_000)
    ('1 s', '1 min', '2 h', '2 days')
    """
    seconds = max(0, ms) // 1000
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length * (2 if unit == "days" else 1):
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def test_of(detail: dict[str, Any]) -> str:
    """Return the test of a split.

    >>> test_of({"attribute": "amount", "test": "numeric", "threshold": 52.5})
    'amount <= 52.5'
    >>> test_of({"attribute": "colour", "test": "category", "category": "red"})
    'colour = red'
    """
    attribute = str(detail.get("attribute"))
    if detail.get("test") == "numeric" and isinstance(detail.get("threshold"), int | float):
        return f"{attribute} <= {detail['threshold']:.6g}"
    return f"{attribute} = {detail.get('category')}" if detail.get("test") == "category" else f"{attribute}?"


def event_in_words(event: dict[str, Any]) -> str:
    """Return a model event as one line."""
    kind, detail = event["event"], event["detail"]
    node = detail.get("node")
    if kind in ("split", "revised"):
        verbs = {"split": "split on", "replaced": "split again on", "moved": "moved its threshold:"}
        sentence = f"node {node} {verbs.get(str(detail.get('action')), 'split on')} {test_of(detail)}"
        if isinstance(detail.get("former"), dict):
            sentence += f" (before: {test_of(detail['former'])})"
        return f"{sentence}; {gap_in_words(detail)}"
    if kind == "pruned":
        former = detail.get("former")
        was = f", {test_of(former)}," if isinstance(former, dict) else ""
        return f"node {node}{was} became a leaf; {gap_in_words(detail)}"
    if kind == "drift":
        if detail.get("level") == "input":
            moved = inputs_in_words(detail)
            return f"{detail.get('detector')}: inputs moved: {moved}; {detail.get('action')}"
        where = "" if node is None else f" at node {node}"
        rate = share(detail.get("error_rate"))
        what = f"{detail.get('level')} at error rate {rate}; {detail.get('action')}"
        return f"{detail.get('detector')}{where}: {what}"
    if kind == "growth-stopped":
        return f"the tree has {number(detail.get('leaves'))} leaves and grows no more"
    if kind == "thresholds-set":
        n_left = detail.get("left")
        more = f"; with too few values yet: {number(n_left)}" if n_left else ""
        n_made = number(detail.get("attributes"))
        return f"numeric attributes with thresholds of their first values: {n_made}{more}"
    if kind in ("promoted", "dropped", "undecided"):
        ends = {
            "promoted": "the challenger became the model",
            "dropped": "the challenger was dropped",
            "undecided": "the challenge ended undecided",
        }
        return f"{ends[kind]} (by {detail.get('by')}): {challenge_in_words(detail.get('challenge'))}"
    if kind == "decided":
        return f"the rule has decided: {challenge_in_words(detail.get('challenge'))}"
    if kind == "challenged" and isinstance(detail.get("challenger"), dict):
        return f"challenged by {detail['challenger'].get('learner')}"
    parts = (f"{part} {detail[part]}" for part in ("learner", "query", "budget", "drift") if part in detail)
    return f"{kind}: {', '.join(parts)}" if detail else str(kind)


INPUTS_NAMED: Final = 3
"""Most inputs that a line names."""


def inputs_in_words(detail: Mapping[str, Any]) -> str:
    """Return the inputs that moved most, with their distances, and the number of the others."""
    inputs = detail.get("inputs")
    moved = [entry for entry in inputs if isinstance(entry, dict)] if isinstance(inputs, list) else []
    words = []
    for entry in moved[:INPUTS_NAMED]:
        name = (
            entry.get("feature") if entry.get("kind") == "feature" else f"{entry.get('kind')} of the answers"
        )
        words.append(f"{name} (KS {number(entry.get('ks'))}, PSI {number(entry.get('psi'))})")
    total = detail.get("moved")
    others = total - len(words) if isinstance(total, int) else 0
    return ", ".join(words) + (f" and {others} more" if others > 0 else "")


def challenge_in_words(challenge: Any) -> str:
    """Return how a challenger compares with its champion, as far as labels show."""
    if not isinstance(challenge, dict):
        return "no challenger"
    labels = number(challenge.get("labels"))
    answered, differ = number(challenge.get("records")), number(challenge.get("disagreements"))
    sentence = f"{challenge.get('learner')}: {differ} of {answered} answers differ, {labels} labels compared"
    difference, low, high = (challenge.get(name) for name in ("difference", "low", "high"))
    if isinstance(difference, float) and isinstance(low, float) and isinstance(high, float):
        sentence += f", accuracy {difference:+.2%} ({low:+.2%} to {high:+.2%}) beside the model"
    decision = challenge.get("decision")
    return sentence if decision == "open" else f"{sentence}; by the rule: {decision}"


def gap_in_words(detail: dict[str, Any]) -> str:
    """Return the gap by which a decision was taken."""
    gap, bound, labels = (detail.get(name) for name in ("gap", "bound", "labels"))
    why = {"tie": "a tie", "only": "the only test"}.get(str(detail.get("reason")), "the gap")
    return f"{why}: gap {number(gap)}, bound {number(bound)}, after {number(labels)} labels"


def cut(text: str, most: int = TEXT_MAX) -> str:
    """Return a text, shortened to at most `most` characters.

    >>> cut("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"
