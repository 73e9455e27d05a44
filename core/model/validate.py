"""Validation: invariants of a model, checked slowly (imports, files, tests).

core/model/soundness.py always checks the words that kernels rely on, which is faster; this module checks all
other invariants.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import SnapshotError
from core.layout.model import ModelHeader
from core.learners.protocol import HasBlocks
from core.model import soundness


def check(model: HasBlocks) -> None:
    """Raise SnapshotError with a list of all broken invariants."""
    broken = list(problems(model))
    if broken:
        raise SnapshotError("; ".join(broken))


def problems(model: HasBlocks) -> Iterator[str]:
    """Yield every broken invariant as a sentence; of words that are unsafe for kernels, only the first."""
    words = ModelHeader.over(model.ints).words
    if words != len(model.ints):
        yield f"words={words} must be {len(model.ints)}"
        return
    unsound = soundness.problem(model.plan, model.ints)
    if unsound is not None:
        yield unsound
        return
    yield from _header_problems(model)
    for number, t in enumerate(model.block_places):
        name = model.plan.blocks.name_of(number)
        yield from (f"{name}: {problem}" for problem in model.plan.blocks.problems(model, t))


def _header_problems(model: HasBlocks) -> Iterator[str]:
    header = ModelHeader.over(model.ints)
    closed = header.replies + header.declined + header.expired
    if not closed <= header.requests <= header.records:
        yield "closed requests, requests and records must not decrease in this order"
    if not 0 <= header.reserved <= header.requests:
        yield "requests for the evaluation must be among the requests"
    if header.classes < model.schema.declared_classes:
        yield f"classes={header.classes} must be at least the number of declared classes"
