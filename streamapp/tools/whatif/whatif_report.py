"""Report of a comparison: for programs, and as lines of text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from streamapp.tools.whatif.comparison import Comparison, Difference
from streamapp.worker.task.sources import Positions, named

DECIMALS: Final = 4
"""Decimals of probabilities in the text, as in predictions."""


class Span(NamedTuple):
    """The part of the log that was compared."""

    base: str  # beginning, snapshot or reset: where the replay began
    since: int | None  # --since: time of the first record (ms)
    start: Positions
    end: Positions


def document(comparison: Comparison, partition: int, span: Span) -> dict[str, Any]:
    """Return the report as an object for JSON."""
    figures, sent, was = comparison.figures, comparison.sent, comparison.was_spec
    accuracy = comparison.accuracy
    share = 0.0 if was is None else was.evaluation.share
    of_all = accuracy.over_all_records(share=share, worth=comparison.worth())
    is_same = comparison.labelling == "same-labels"
    return {
        "key": comparison.key,
        "partition": partition,
        "spec": comparison.spec.to_dict(),
        "was_spec": None if was is None else was.to_dict(),
        "since": None if span.since is None else iso_time(span.since),
        "base": span.base,
        "from": named(span.start),
        "to": named(span.end),
        "model": comparison.beginning,
        "controls_overridden": comparison.overridden,
        "records": figures.records,
        "reproduced": {"equal": sent.equal, "different": sent.different, "not_found": sent.not_found},
        "labelling": comparison.labelling,
        "exact": is_same,
        "answers_equal": figures.equal,
        "classes_equal": figures.same_class,
        "first_difference": _difference(figures.first, partition),
        "first_other_class": _difference(figures.first_class, partition),
        "labels": {
            "spent": figures.spent,
            "wanted": figures.wanted,
            "exist": figures.existing,
            "share": figures.existing / figures.wanted if figures.wanted else None,
            "came": figures.came,
            "own": figures.own,
            "unasked": figures.unasked,
        },
        "accuracy": accuracy.on_same_labels() if is_same else of_all,
        "accuracy_of_all": of_all,
    }


def as_text(found: dict[str, Any]) -> str:
    """Return the report as lines."""
    reproduced, labels = found["reproduced"], found["labels"]
    n, positions = found["records"], found["from"]
    where = ", ".join(f"{source} {at}" for source, at in positions.items())
    lines = [
        f"log        partition {found['partition']} from {where}: {BASES[found['base']]}",
        f"model      {MODELS[found['model']]}",
        f"answers    {n:,}; the log reproduces {reproduced['equal']:,} of {n:,} sent answers"
        + "".join(
            f", {reproduced[kind]:,} {words}"
            for kind, words in (("different", "differ"), ("not_found", "are not on the topic any more"))
            if reproduced[kind]
        ),
        f"equal      {found['answers_equal']:,} answers to the bit, {found['classes_equal']:,} classes",
    ]
    if found["controls_overridden"]:
        count = found["controls_overridden"]
        lines.append(f"controls   {count:,} of the log set another spec; they are without effect here")
    for name, title in (("first_difference", "differs"), ("first_other_class", "class")):
        if found[name] is not None:
            lines.append(f"{title:10} first at {_shown(found[name])}")
    exist = f"{labels['exist']:,}" + ("" if labels["share"] is None else f" ({labels['share']:.1%})")
    lines += [
        f"labels     {labels['spent']:,} requested, {labels['wanted']:,} would be; of these exist {exist}",
        f"           {labels['own']:,} came with their record, {labels['unasked']:,} without a request",
        f"means      {MEANINGS[found['labelling']]}",
    ]
    lines += _accuracy("accuracy", found["accuracy"])
    if found["accuracy_of_all"] != found["accuracy"]:
        lines += _accuracy("of all", found["accuracy_of_all"])
    return "\n".join(lines)


BASES: Final = {
    "beginning": "the journal is there from its beginning",
    "snapshot": "the state before comes from a snapshot",
    "reset": "the state before was given up by a reset",
}
MODELS: Final = {
    "continued": "goes on with what it had learned before, as after a configure",
    "new": "is a new model with the same schema, as after a reset with this spec",
    "created-later": "is created in this part of the log, with this spec",
}
MEANINGS: Final = {
    "same-labels": "exact for the labels that were requested: both learn them where they came",
    "wanted-labels": "another strategy: a wanted label is learned only if it was requested in the log",
}
SOURCES: Final = {
    "same-labels": "on the {labels:,} labels that came, exact for these",
    "reserve": "over all records, by {labels:,} labels of the reserved share",
    "chances": "over all records, by {labels:,} labels with known chances",
}


def _accuracy(title: str, found: dict[str, Any]) -> list[str]:
    if found["was"] is None:
        reason = (
            "not known: the strategy of the log has no known chances, and no share of the records was "
            "reserved (evaluation.share)"
            if found["by"] is None
            else "not known: no label of this kind came"
        )
        return [f"{title:10} {reason}"]
    low, high = found["interval"]
    worse, better = found["difference_interval"]
    return [
        f"{title:10} {found['was']:.2%} was, {found['would_be']:.2%} would be ({low:.2%} to {high:.2%}), "
        + SOURCES[found["by"]].format(labels=found["labels"]),
        f"           difference {100 * found['difference']:+.2f} points ({100 * worse:+.2f} to "
        f"{100 * better:+.2f})",
    ]


def _difference(found: Difference | None, partition: int) -> dict[str, Any] | None:
    if found is None:
        return None
    was, would_be = found
    return {
        "partition": partition,
        "offset": was.offset,
        "id": was.id,
        "was": was.to_dict(),
        "would_be": None if would_be is None else would_be.to_dict(),
    }


def _shown(difference: dict[str, Any]) -> str:
    was, would_be = difference["was"], difference["would_be"]
    after = "no answer" if would_be is None else _answer(would_be)
    place = f"{difference['partition']}:{difference['offset']}"
    return f"{place} ({difference['id']}): {_answer(was)}, would be {after}"


def _answer(found: dict[str, Any]) -> str:
    label = found["label"]
    if label is None:
        return "no class known yet"
    return f"{label} {found['probabilities'][label]:.{DECIMALS}f}"


def iso_time(milliseconds: int) -> str:
    """Return a time (ms since the epoch) in ISO 8601, UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
