"""Validation: invariants of a model, checked slowly (imports, files, tests).

core/model/soundness.py always checks the words that kernels rely on, which is faster; this module checks all
other invariants.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import SnapshotError
from core.learners.protocol import HasBlocks
from core.model import soundness
from core.tree import layout as at


def check(model: HasBlocks) -> None:
    """Raise SnapshotError with a list of all broken invariants."""
    found = list(problems(model))
    if found:
        raise SnapshotError("; ".join(found))


def problems(model: HasBlocks) -> Iterator[str]:
    """Yield every broken invariant as a sentence; of words that are unsafe for kernels, only the first."""
    if model.ints[at.MODEL_WORDS] != len(model.ints):
        yield f"words={model.ints[at.MODEL_WORDS]} must be {len(model.ints)}"
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
    ints = model.ints
    closed = ints[at.MODEL_REPLIES] + ints[at.MODEL_DECLINED] + ints[at.MODEL_EXPIRED]
    if not closed <= ints[at.MODEL_REQUESTS] <= ints[at.MODEL_RECORDS]:
        yield "closed requests, requests and records must not decrease in this order"
    if not 0 <= ints[at.MODEL_RESERVED] <= ints[at.MODEL_REQUESTS]:
        yield "requests for the evaluation must be among the requests"
    if ints[at.MODEL_CLASSES] < model.schema.declared_classes:
        yield f"classes={ints[at.MODEL_CLASSES]} must be at least the number of declared classes"
