"""Models with every plug-in, which a release wrote, can be read and go on as they would have."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from core import registry
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.model import snapshot, validate
from core.model.model import Model
from core.plan_words import plugins_of
from core.spec import Spec
from core.state_version import ALIKE_SINCE
from tests.golden import plugins as golden
from tests.golden.plugin_specs import SPECS

CLOSE = 1e-9
"""Largest difference of numbers that two platforms compute, relative to numbers above 1."""
LEAST = 1e-200
"""The bits of counts and positions, read as float64, are a number below it."""
CASES = [(path, name) for path in golden.files() for name in golden.expected(path)]
IDS = [f"{path.stem}-{name}" for path, name in CASES]
SECTIONS = [
    name for name, field in PlanRecord.FIELDS.items() if field.meaning.startswith("position in the model:")
]


def restored(path: Path, name: str) -> Model:
    return Model.restore(golden.snapshots(path)[name])


def differences(found: Any, expected: Any, where: str = "") -> list[str]:
    """Return where JSON differs; numbers with a fraction may differ by CLOSE."""
    if isinstance(expected, dict) and isinstance(found, dict) and found.keys() == expected.keys():
        return [flaw for key in expected for flaw in differences(found[key], expected[key], f"{where}.{key}")]
    if isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return [flaw for at, (a, b) in pairs for flaw in differences(a, b, f"{where}[{at}]")]
    if isinstance(expected, float) and isinstance(found, float):
        return [] if abs(found - expected) <= 2 * CLOSE else [f"{where}: {found!r} was {expected!r}"]
    return [] if found == expected else [f"{where}: {found!r} was {expected!r}"]


def same_words(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which words are equal, or are numbers that differ by rounding only."""
    x, y = a.view(np.float64), b.view(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(x - y) <= CLOSE * np.maximum(np.abs(y), 1.0)
        are_numbers = ((x == 0.0) | (np.abs(x) > LEAST)) & ((y == 0.0) | (np.abs(y) > LEAST))
    return np.asarray((a == b) | (near & are_numbers), dtype=np.bool_)


def test_there_is_a_file_of_the_version_that_is_written() -> None:
    path = golden.file_of_now()
    assert path in golden.files(), "write it: python -m tests.golden.plugins"
    headers = {name: snapshot.describe(data) for name, data in golden.snapshots(path).items()}
    given = {name: body["given"] for name, body in golden.expected(path).items()}
    assert given == SPECS
    assert list(headers) == list(SPECS)
    states = {name: header.state for name, header in headers.items()}
    assert states == {name: Spec.parse(spec).state_version for name, spec in SPECS.items()}


def test_every_plugin_has_a_golden_model() -> None:
    """A model of today's words, since a change of their meaning raises ALIKE_SINCE."""
    present = set()
    for path in golden.files():
        headers = [snapshot.describe(data) for data in golden.snapshots(path).values()]
        for spec in (header.spec for header in headers if header.state >= ALIKE_SINCE):
            plugins = [spec.learner, spec.acquire, *(plugin for _, plugin in plugins_of(spec))]
            present |= {f"{plugin.family}/{plugin.name}" for plugin in plugins}
    known = {f"{family}/{name}" for family in registry.FAMILIES for name in registry.names(family)}
    missing = sorted(known - present)
    assert missing == [], "add a spec to tests/golden/plugin_specs.py, run python -m tests.golden.plugins"


def test_every_section_of_a_model_has_words_in_a_golden_model() -> None:
    """The section of a new part of specs is empty in all models that were written before it came."""
    records = [restored(golden.file_of_now(), name).plan.record for name in SPECS]
    starts = {name: [int(getattr(record, name)) for record in records] for name in SECTIONS}
    in_order = sorted(SECTIONS, key=lambda name: sum(starts[name]))
    assert in_order[-1] == "blocks"
    empty = [name for name, after in itertools.pairwise(in_order) if starts[name] == starts[after]]
    assert empty == [], "add a spec with this part to tests/golden/plugin_specs.py"


def test_golden_models_have_grown() -> None:
    """Models that are all at their beginning would leave most words at their first values."""
    models = [restored(golden.file_of_now(), name) for name in SPECS]
    assert {len(model.block_places) for model in models} == {1, 2}
    summaries = [model.summary() for model in models]
    assert sum(summary.splits > 0 for summary in summaries) > len(SPECS) // 2
    assert any(summary.rebuilds for summary in summaries)
    assert any(summary.expired and summary.outstanding for summary in summaries)


@pytest.mark.parametrize(("path", "name"), CASES, ids=IDS)
def test_an_old_model_is_what_it_was_and_goes_on(path: Path, name: str) -> None:
    expected = golden.expected(path)[name]
    data = golden.snapshots(path)[name]
    validate.check(Model.restore(data))
    header = snapshot.describe(data)
    assert header.spec == Spec.parse(expected["given"], header.state)
    assert header.schema == golden.schema_of(header.spec)
    assert differences({"given": expected["given"]} | golden.described(data), expected) == []


@pytest.mark.parametrize("name", SPECS)
def test_a_golden_model_goes_on_like_a_model_that_was_never_written(name: str) -> None:
    """All words are compared: a word that a change moved or gave another meaning differs."""
    end = golden.BEFORE + golden.AFTER
    fresh, expected_answers = golden.play(golden.written(name), golden.BEFORE, end)
    old, answers = golden.play(restored(golden.file_of_now(), name), golden.BEFORE, end)
    assert answers == expected_answers
    assert old.summary() == fresh.summary()
    words, expected = (snapshot.trim(model.plan, model.ints) for model in (old, fresh))
    assert len(words) == len(expected)
    assert np.flatnonzero(~same_words(words, expected)).tolist() == []
    assert ModelHeader.read(words).records == end
