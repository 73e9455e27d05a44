import json
from typing import Any

import pytest

from core import registry
from core.errors import ParameterError, SpecError, UnknownPluginError
from core.spec import Spec, presets
from tests.unit.core.builders import TREES


def test_every_preset_is_a_spec():
    assert "h-tree" in presets()
    for name in presets():
        assert Spec.parse(name).learner.name == name.replace("-", "_")


def test_the_default_is_h_tree_with_all_labels_it_gets():
    spec = Spec.parse(None)
    assert spec == Spec.parse("h-tree") == Spec.parse({}) == Spec.parse("{}") == Spec.parse(b"{}")
    learner: Any = spec.learner
    assert (learner.schedule.grace_period, learner.bound.delta, learner.tau) == (
        200.0,
        1e-7,
        0.05,
    )
    assert (spec.query.name, spec.budget.limit, spec.drift.name) == ("always", 1.0, "none")


def test_canonical_json_is_a_fixed_point():
    spec = Spec.parse({"drift": "ddm", "learner": {"grace_period": 100, "name": "h-tree"}, "seed": 3})
    text = spec.to_json()
    assert Spec.parse(text) == spec
    assert Spec.parse(text).to_json() == text
    assert hash(Spec.parse(text)) == hash(spec)
    body = json.loads(text)
    assert body["learner"]["grace_period"] == 100.0
    parameters = {"warm_up": 30, "warning": 2.0, "drift": 3.0, "min_errors": 0}
    assert body["drift"] == {"name": "ddm", "reaction": "rebuild"} | parameters
    assert body["explain"] is False


@pytest.mark.parametrize("name", ["vfdt", "hoeffding-tree", "hoeffding_tree", "h_tree"])
def test_other_names_of_the_hoeffding_tree(name):
    spec = Spec.parse({"learner": {"name": name, "grace_period": 100}})
    assert spec == Spec.parse({"learner": {"name": "h-tree", "grace_period": 100}})
    assert spec.to_dict()["learner"]["name"] == "h-tree"
    assert Spec.parse(name) == Spec.parse("h-tree")


def test_hyphen_and_underscore_are_equal_in_every_family():
    given = {"query": "fixed-uncertainty", "drift": "page-hinkley", "learner": {"criterion": "info-gain"}}
    body = Spec.parse(given).to_dict()
    assert (body["query"]["name"], body["drift"]["name"]) == ("fixed_uncertainty", "page_hinkley")
    assert body["learner"]["criterion"] == "info_gain"


def test_no_other_name_hides_a_plugin():
    for family in (*registry.FAMILIES, "streams"):
        assert not set(registry.aliases(family)) & set(registry.names(family))


def test_parts_by_name_or_object():
    assert Spec.parse({"query": "random"}) == Spec.parse({"query": {"name": "random"}})
    assert Spec.parse({"learner": "h-tree"}) == Spec.parse("h-tree")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            "h-tre",
            UnknownPluginError,
            r"unknown learner 'h-tre'; known: .*h-tree.*; did you mean 'h-tree'\?$",
        ),
        ("vftd", UnknownPluginError, r"unknown learner 'vftd'; known: .*; did you mean 'vfdt'\?$"),
        ("perceptron", UnknownPluginError, "unknown learner 'perceptron'; known: .*ufodt$"),
        (
            {"query": "sometimes"},
            UnknownPluginError,
            "unknown query strategy 'sometimes'; known: always, .*conf_tree, .*random",
        ),
        (
            {"drift": "ddmm"},
            UnknownPluginError,
            "unknown drift detector 'ddmm'; .*none, .*; did you mean 'ddm'",
        ),
        ({"budget": "purse"}, UnknownPluginError, "unknown budget 'purse'; known: .*count"),
        ({"learner": {"criterion": "ginny"}}, UnknownPluginError, "unknown criterion 'ginny'; known: .*gini"),
        (
            {"learner": {"bound": {"name": "hoeffding"}}},
            ParameterError,
            "bound=.* must be a name in quotes: c_tree, hoeffding, mcdiarmid; its parameters stand beside it",
        ),
        (
            {"learner": {"leaf_model": 3}},
            ParameterError,
            "leaf_model=3 must be a name in quotes: idbd, mc, nb, nba",
        ),
        (
            {"learner": {"leaf_model": "svm"}},
            UnknownPluginError,
            "unknown leaf model 'svm'; known: idbd, mc, nb, nba",
        ),
        ({"learner": {"criterion": 3}}, ParameterError, "criterion=3 must be a name in quotes: entropy"),
        (
            {"learner": {"graceperiod": 1}},
            ParameterError,
            r"graceperiod=1 is no parameter of 'h-tree'; known: .*tau.*; did you mean 'grace_period'\?$",
        ),
        ({"learner": {"delta": 0.0}}, ParameterError, "delta=0.0 must be above 0.0"),
        ({"learner": {"grace_period": "200"}}, ParameterError, "grace_period='200' must be a finite number"),
        ({"learner": {"max_leaves": 1.5}}, ParameterError, "max_leaves=1.5 must be a whole number"),
        ({"learner": {"binary_splits": 1}}, ParameterError, "binary_splits=1 must be true or false"),
        ({"learner": {"max_branches": 1}}, ParameterError, "max_branches=1 must be 0 .* or at least 2"),
        ({"learner": {"compat": "weka"}}, ParameterError, "compat='weka' must be one of null, 'moa'"),
        ({"learner": {"tau": float("nan")}}, ParameterError, "tau=nan must be a finite number"),
        ({"budget": {"limit": 1.5}}, ParameterError, "limit=1.5 must be at most 1.0"),
        (
            {"budget": {"limt": 0.5}},
            ParameterError,
            "limt=0.5 is no parameter of 'count'; known: limit.* mean 'limit'",
        ),
        ({"query": {"name": "never", "x": 1}}, ParameterError, "x=1 is no parameter of 'never'; known: none"),
        ({"query": 7}, ParameterError, "query=7 must be a name or an object"),
        ({"evaluation": {"window": 0}}, ParameterError, "window=0 must be at least 1"),
        ({"evaluation": 1000}, ParameterError, "evaluation=1000 must be an object"),
        ({"learners": {}}, ParameterError, "learners={} is no part of a spec; .*; did you mean 'learner'"),
        ({"seed": -1}, ParameterError, "seed=-1 must be at least 0"),
        ({"max_classes": 0}, ParameterError, "max_classes=0 must be at least 1"),
        ("{", SpecError, "must be a JSON object"),
        ("[1]", SpecError, r"spec='\[1\]' must be a JSON object or the name of a learner"),
        ('"h-tree"', SpecError, "must be a JSON object or the name of a learner without quotes"),
        ("h-tree]", UnknownPluginError, "unknown learner"),
    ],
)
def test_refusals_say_what_is_known(given, error, message):
    with pytest.raises(error, match=message):
        Spec.parse(given)


def test_kinds_are_positions_among_the_names():
    for family in registry.FAMILIES:
        names = registry.names(family)
        assert list(names) == sorted(names)
        assert [registry.kind(family, name) for name in names] == list(range(len(names)))


@pytest.mark.parametrize(("axis", "name"), [("numeric_observer", "nominal"), ("nominal_observer", "exact")])
def test_an_observer_of_the_other_kind_is_refused(axis, name):
    with pytest.raises(ParameterError, match=f"{axis}='{name}' must be one of"):
        Spec.parse({"learner": {"name": "h-tree", axis: name}})


@pytest.mark.parametrize(
    ("learner", "rule"),
    [
        ({"name": "efdt", "compat": "imac"}, r"compat='imac' must be one of null, 'moa' for 'efdt'"),
        ({"name": "efdt-imac", "compat": "moa"}, r"compat='moa' must be null with the schedule 'imac'"),
        ({"name": "efdt-imac", "compat": "imac"}, r"compat='imac' must be null with the schedule 'imac'"),
        ({"name": "efdt", "schedule": "imac", "compat": "moa"}, r"must be null with the schedule 'imac'"),
        ({"name": "hat", "compat": "imac"}, r"compat='imac' must be one of null, 'moa' for 'hat'"),
    ],
)
def test_a_compatibility_that_no_code_defines_is_refused(learner, rule):
    with pytest.raises(ParameterError, match=rule):
        Spec.parse({"learner": learner})


OWN_COMPATIBILITIES = ("efdt", "efdt_imac", "efhat", "hat", "last", "plastic")


@pytest.mark.parametrize("name", [name for name in TREES if name not in OWN_COMPATIBILITIES])
def test_every_other_preset_has_both_compatibilities(name):
    for compat in (None, "moa", "imac"):
        assert Spec.parse({"learner": {"name": name, "compat": compat}}).learner.compat == compat


def test_a_fault_of_cdts_code_is_copied_with_that_code_alone():
    learner = {"name": "c-tree", "compat": "cdt", "c": 0.05, "freeze_null": True}
    assert Spec.parse({"learner": learner}).learner.numeric_observer.candidates == 100
    with pytest.raises(ParameterError, match="freeze_null=True must be false with compat='moa'"):
        Spec.parse({"learner": learner | {"compat": "moa"}})


def test_the_trees_of_cdts_code_have_its_criterion_and_constant_unless_others_are_named():
    corrh, mcdiarmid = (
        Spec.parse({"learner": {"name": name, "compat": "cdt"}}).learner
        for name in ("corrh-tree", "mcdiarmid-tree")
    )
    assert (corrh.criterion.name, corrh.max_classes) == ("sorted_error", 2)
    assert mcdiarmid.bound.mcd_form == "cdt"
    other = {"name": "corrh-tree", "compat": "cdt", "criterion": "error", "candidates": 10}
    assert Spec.parse({"learner": other}).learner.criterion.name == "error"
    assert Spec.parse({"learner": "corrh-tree"}).learner.criterion.name == "error"
