"""The quirks of published codes: one bit and one meaning each, used somewhere, held by some ``compat``."""

import re
from pathlib import Path

import pytest

from core.learners.hoeffding.learner import HoeffdingLearner
from core.plan import Plan
from core.tree import quirks
from tests.unit.core.builders import schema_of, spec_of

CORE = Path(quirks.__file__).parents[1]
SETS = ("MOA", "MOA_ADAPTIVE")
BITS = {name: value for name, value in vars(quirks).items() if isinstance(value, int) and name not in SETS}


def test_each_has_a_bit_and_a_meaning_of_its_own():
    assert list(BITS.values()) == [1 << bit for bit in range(len(BITS))] == list(quirks.MEANINGS)
    assert len(set(quirks.MEANINGS.values())) == len(BITS)


def test_each_is_looked_at_and_held_by_some_published_code():
    sources = "".join(path.read_text() for path in CORE.rglob("*.py"))
    assert set(re.findall(r"\bquirks\.([A-Z_]+)\b", sources)) - {"OF_COMPAT", *SETS} == set(BITS)
    held = quirks.MOA_ADAPTIVE
    for flags in quirks.OF_COMPAT.values():
        held |= flags
    assert held == sum(BITS.values())


def test_every_compat_that_a_learner_may_have_is_in_the_table():
    options = HoeffdingLearner.__dataclass_fields__["compat"].metadata["options"]
    assert set(quirks.OF_COMPAT) == set(options)
    assert quirks.OF_COMPAT[None] == 0


@pytest.mark.parametrize("compat", ["moa", "imac", "cdt", None])
def test_a_plan_has_those_of_its_learner(compat):
    plan = Plan.of(spec_of(compat=compat), schema_of(None, 2))
    assert plan.record.quirks == quirks.OF_COMPAT[compat]
