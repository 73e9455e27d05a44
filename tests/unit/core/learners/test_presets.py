"""Presets of one kind of tree: what a user who tries one by its name gets."""

import pytest

from core.spec import Spec
from core.streams import open_generator
from tests.unit.core.builders import answer, table_of

PRESETS = ("c-tree", "cgd", "corrh-tree", "efdt", "efdt-imac", "h-tree", "imac", "mcdiarmid-tree", "osm")


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_answers_before_it_has_split(name):
    """Majority leaves would answer with one class of three: a third is right."""
    stream = open_generator("waveform", seed=1)
    table = table_of(stream.schema, Spec.parse({"learner": name, "evaluation": {"every": 0}}))
    x, y = stream.take(1500)
    assert (answer(table, x, y).prediction == y).mean() > 0.7


@pytest.mark.parametrize("name", ["c-tree", "corrh-tree", "mcdiarmid-tree"])
def test_presets_of_cdt_have_its_leaves_with_its_code(name):
    spec = Spec.parse({"learner": {"name": name, "compat": "cdt"}})
    assert spec.learner.leaf_model.name == "mc"
    given = Spec.parse({"learner": {"name": name, "compat": "cdt", "leaf_model": "nb"}})
    assert given.learner.leaf_model.name == "nb"


@pytest.mark.parametrize("compat", ["moa", "imac"])
@pytest.mark.parametrize("name", ["cgd", "imac", "osm"])
def test_presets_of_schedules_have_majority_leaves_with_published_code(name, compat):
    assert Spec.parse({"learner": {"name": name, "compat": compat}}).learner.leaf_model.name == "mc"
