"""Numbers seen: those of a plain list of all records answered, whatever the cut."""

import math

import numpy as np
import pytest

from core.kernels.records import offset
from core.layout.model import ModelHeader
from core.model import numbers_seen, snapshot, upgrade
from core.model.model import Model
from core.model.numbers_seen import NumberRange
from core.model_table import ANSWER_ONLY, LABELLED, ON_REQUEST
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.unit.core.builders import answer, table_of

ATTRIBUTES = [Attribute("x"), Attribute("colour", "nominal", ("red", "green")), Attribute("y")]
SCHEMA = Schema.of(ATTRIBUTES, "ab")
OPEN = Schema.of(ATTRIBUTES, "ab", open_attributes=True, classes_open=True)
ALWAYS = {"query": "always", "budget": {"name": "count", "limit": 1.0}}


def spec_with(explain=True, learner="h-tree", **more):
    return Spec.parse({"learner": {"name": learner}, "explain": explain, **ALWAYS, **more})


def drawn(n, seed=1):
    """Return records with missing numbers, infinite ones, and some that come again."""
    draw = np.random.default_rng(seed)
    x = np.column_stack([draw.normal(size=n) * 1e3, draw.integers(0, 2, n), draw.integers(-3, 4, n)])
    x[draw.random(n) < 0.2, 0] = np.nan
    x[draw.random(n) < 0.1, 2] = np.nan
    x[draw.random(n) < 0.05, 0] = np.inf
    return x.astype(np.float64)


def naive(x):
    """Return what was seen by column, by lists."""
    found = {}
    for column in (0, 2):
        values = [value for value in x[:, column].tolist() if math.isfinite(value)]
        if values:
            found[column] = NumberRange(min(values), max(values), len(values))
    return found


def seen(table):
    model = table.model(0)
    return numbers_seen.read(model.plan, model.floats)


def feed(table, x, labels=None, mode=LABELLED):
    y = np.full(len(x), -1, dtype=np.int32) if labels is None else labels
    return answer(table, x, y, np.ones(len(x)), mode)


@pytest.mark.parametrize("learner", ["h-tree", "efdt", "majority-class", "boct"])
@pytest.mark.parametrize("mode", [LABELLED, ON_REQUEST])
@pytest.mark.parametrize("cut", [1, 7, 60])
def test_each_request_has_what_was_answered_up_to_its_record(learner, mode, cut):
    x, table = drawn(60), table_of(SCHEMA, spec_with(learner=learner))
    told: dict[int, dict[int, NumberRange]] = {}
    for first in range(0, len(x), cut):
        answers = feed(table, x[first : first + cut], mode=mode)
        told |= {first + row: found for row, found in answers.seen.items()}
    assert told == {row: naive(x[: row + 1]) for row in range(len(x))}
    assert seen(table) == naive(x)


def test_records_with_labels_count_and_ask_for_nothing():
    x, table = drawn(40), table_of(SCHEMA, spec_with())
    answers = feed(table, x, np.arange(40, dtype=np.int32) % 2)
    assert answers.seen == {}
    assert seen(table) == naive(x)


def test_a_frozen_model_is_not_changed():
    x, table = drawn(40), table_of(SCHEMA, spec_with())
    feed(table, x[:20])
    before = table.model(0).snapshot()
    assert feed(table, x[20:], mode=ANSWER_ONLY).seen == {}
    assert table.model(0).snapshot() == before


def test_a_model_that_does_not_explain_itself_keeps_nothing():
    x, table = drawn(40), table_of(SCHEMA, spec_with(explain=False))
    assert feed(table, x).seen == {}
    assert seen(table) == {}
    plan = table.model(0).plan.record
    assert plan.numbers_seen == plan.measures


def test_they_live_through_growth_new_attributes_and_snapshots_and_begin_anew_when_switched_on():
    x, table = drawn(300), table_of(OPEN, spec_with(drift="ddm"))
    feed(table, x[:10])
    model = table.model(0)
    model.adopt(OPEN.with_attributes([Attribute("z")]).with_class("c"))
    table.refresh(0)
    wide = np.column_stack([x, np.arange(len(x), dtype=np.float64)])
    feed(table, wide[10:200], np.arange(190, dtype=np.int32) % 3)
    assert seen(table) == naive(x[:200]) | {3: NumberRange(10.0, 199.0, 190)}
    again = Model.restore(table.model(0).snapshot())
    assert numbers_seen.read(again.plan, again.floats) == seen(table)
    model.configure(spec_with(explain=False, drift="ddm"))
    table.refresh(0)
    assert seen(table) == {}
    model.configure(spec_with(drift="ddm"))
    table.refresh(0)
    feed(table, wide[200:])
    assert seen(table) == naive(x[200:]) | {3: NumberRange(200.0, 299.0, 100)}


@pytest.mark.parametrize("explain", [True, False])
def test_a_model_of_version_6_begins_with_none(explain):
    x, table = drawn(60), table_of(SCHEMA, spec_with(explain, drift="ddm"))
    feed(table, x, np.arange(60, dtype=np.int32) % 2)
    model = table.model(0)
    plan, words = model.plan, snapshot.trim(model.plan, model.ints)
    start, end = int(plan.record.numbers_seen), int(plan.record.shared)
    old = np.concatenate([words[:start], words[end:]])
    for word in (offset(ModelHeader, name) for name in ("words", "first", "second")):
        old[word] -= (end - start) if old[word] else 0
    found = upgrade.upgraded(plan, old, 6)
    snapshot.check_words(plan, found)
    blank = words.copy()
    blank[start:end] = 0
    assert np.array_equal(found, blank)
    assert upgrade.upgraded(plan, old[: start - 1], 6) is not None, "cut off: for the check of sizes"


def test_the_largest_numbers_and_many_attributes_are_told_as_far_as_they_are_read():
    n = numbers_seen.TOLD + 3
    table = table_of(Schema.of([Attribute(f"x{j}") for j in range(n)], "ab"), spec_with())
    x = np.vstack([np.full(n, -1.7e308), np.full(n, 1.7e308)])
    answers = feed(table, x)
    assert len(answers.seen[1]) == numbers_seen.TOLD
    assert answers.seen[1][0] == NumberRange(-1.7e308, 1.7e308, 2)
