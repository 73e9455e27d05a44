"""Specs of older releases mean what they meant."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest

from core import registry
from core.errors import ParameterError
from core.spec import EvaluationPlan, Spec, presets
from core.state_version import (
    ALIKE_SINCE,
    BOUNDED,
    MEANT,
    NEW_WORDS,
    READABLE,
    STATE_VERSION,
    UNNAMED,
    check_words,
    oldest_version,
    upgrade,
)
from tests.golden import exported, units
from tests.golden.versions import WRITTEN, extended

KNOWN = ", ".join(map(str, READABLE))
GOLDEN = Path(__file__).parents[2] / "golden"

SPECS: list[Any] = [
    {},
    *({"learner": name} for name in presets()),
    {"learner": {"tau": 0.1}, "seed": 3},
    {"learner": {"name": "arf", "member": "imac"}},
    {"learner": {"name": "srp", "member": {"name": "c-tree", "c": 0.2}}},
    {"query": "fixed_uncertainty", "drift": "adwin"},
    {"query": {"name": "fixed_uncertainty", "threshold": 0.8}, "drift": {"name": "adwin", "clock": 1}},
]


def test_all_versions_from_the_first_readable_one_on_are_readable() -> None:
    assert list(READABLE) == list(range(READABLE[0], STATE_VERSION + 1))
    assert UNNAMED.keys() == MEANT.keys()


def test_there_are_golden_files_of_every_readable_version() -> None:
    """A version above ALIKE_SINCE is written for models with its new words only, if there are any."""
    written = {version for version in READABLE if version <= ALIKE_SINCE or NEW_WORDS.get(version)}
    for files in (units.files(), exported.files()):
        present = {int(path.stem.rsplit("-", 1)[1]) for path in files}
        assert present == written, "write the missing ones: python -m tests.golden.units, …exported"


def test_the_specs_of_golden_files_have_words_that_came_with_their_version() -> None:
    for version in WRITTEN:
        assert oldest_version(extended({}, version)) == version, "versions.ADDED needs one of its new words"


@pytest.mark.parametrize("version", READABLE)
@pytest.mark.parametrize("given", SPECS, ids=str)
def test_an_upgraded_spec_can_be_built_and_is_not_changed_by_a_second_upgrade(
    given: dict[str, Any], version: int
) -> None:
    upgraded = upgrade(given, version)
    assert upgrade(upgraded, version) == upgraded
    spec = Spec.parse(given, version)
    assert Spec.parse(upgraded) == spec
    assert Spec.parse(spec.to_json(), version) == spec


NEW: list[tuple[int, str, dict[str, Any]]] = [
    (10, "drift=null", {"drift": None}),
    (10, "acquire=null", {"acquire": None}),
    (9, "class_weights", {"class_weights": {"name": 2.0}}),
    (9, "evaluation.per_class", {"evaluation": {"per_class": False}}),
    (9, "query.ask", {"query": "ask"}),
    (9, "query.rate.anneal", {"query": {"name": "rate", "anneal": 100}}),
    (9, "query.rate.score=margin", {"query": {"name": "rate", "score": "margin"}}),
    (9, "query.conf_tree.score", {"query": {"name": "conf_tree", "score": "votes"}}),
    (8, "learner.ufodt.prediction=posterior", {"learner": {"name": "ufodt", "prediction": "posterior"}}),
    (8, "learner.ufft.step_share", {"learner": {"name": "ufft", "step_share": 0.5}}),
    (7, "learner.hat", {"learner": {"name": "arf", "member": {"name": "hat"}}}),
    (7, "learner.hoeffding_adaptive_tree", {"learner": "hoeffding-adaptive-tree"}),
    (6, "acquire", {"acquire": "path"}),
]


@pytest.mark.parametrize(("since", "word", "spec"), NEW, ids=[word for _, word, _ in NEW])
def test_a_word_is_refused_as_releases_of_earlier_versions_refused_it(
    since: int, word: str, spec: dict[str, Any]
) -> None:
    for version in READABLE:
        if version >= since:
            check_words(spec, version)
            continue
        with pytest.raises(ParameterError, match="it came with version") as caught:
            check_words(spec, version)
        if version == since - 1:
            assert str(caught.value) == (
                f"{word} must be a word of state version {version}: it came with version {since}"
            )


@pytest.mark.parametrize("version", [*READABLE])
def test_words_that_a_version_had_are_not_refused(version: int) -> None:
    """With the strategy that a spec of then had if it named none, and with parts that mean nothing."""
    for spec in ({"query": {"name": "rate", "score": "conf_tree"}}, {"learner": {"leaf_model": "mc"}}, {}):
        if version >= 6:
            check_words(spec, version)
    check_words({"query": 7, "learner": {"name": [], "member": 3}, "evaluation": None}, version)
    check_words({"budget": {"limit": 0.1}, "query": {"batch": 3}}, version)


def test_every_new_word_is_one_of_today() -> None:
    """A word that is misspelled in the table would refuse nothing."""
    families = {"learner": "learners", "query": "queries", "drift": "drift"}
    for word in frozenset().union(*NEW_WORDS.values()):
        part, *inside = word.partition("=")[0].split(".")
        if not inside:
            assert part in {*(field.name for field in dataclasses.fields(Spec)), LIST_OF_DETECTORS}
        elif part == "evaluation":
            assert inside[0] in {field.name for field in dataclasses.fields(EvaluationPlan)}
        else:
            is_input = part == "drift" and inside[0] in registry.names("inputs")
            plugin = registry.plugin("inputs" if is_input else families[part], inside[0])
            assert set(inside[1:]) <= {field.name for field in dataclasses.fields(plugin)}, word


PARTS = {
    "learners": "learner",
    "queries": "query",
    "budgets": "budget",
    "drift": "drift",
    "inputs": "drift",
    "acquirers": "acquire",
    "calibrators": "calibration",
}
"""Family → the part of a spec that names its plug-ins."""
LIST_OF_DETECTORS = "drift[]"
NULLS = ("acquire=null", "drift=null")
"""Parts that may be null instead of the name of a plug-in that does nothing."""


def words_of_today() -> set[str]:
    """Return the words of specs: parts, plug-ins with their aliases, parameters and their options."""
    words = {field.name for field in dataclasses.fields(Spec)} - {"inputs"} | {LIST_OF_DETECTORS, *NULLS}
    words |= {f"evaluation.{field.name}" for field in dataclasses.fields(EvaluationPlan)}
    for family, part in PARTS.items():
        aliases = registry.aliases(family)
        for name in registry.names(family):
            if (family, name) == ("inputs", "none"):
                continue  # no spec can name it
            words |= {f"{part}.{each}" for each in (name, *(a for a, n in aliases.items() if n == name))}
            for field in dataclasses.fields(registry.plugin(family, name)):
                words.add(f"{part}.{name}.{field.name}")
                options = field.metadata.get("options", ())
                words |= {f"{part}.{name}.{field.name}={word}" for word in options if word is not None}
    return words


@pytest.mark.parametrize("version", [8, 9])
def test_the_words_since_a_version_are_those_that_it_refuses(version: int) -> None:
    """``words-8.json`` has the words of the last release of version 8. A plug-in stands for its own.

    A worker of that release must stop at a model that uses a newer word: it would lose the model otherwise.
    """
    then = set(json.loads((GOLDEN / f"words-{version}.json").read_text()))
    later = frozenset[str]().union(*(words for since, words in NEW_WORDS.items() if since > version))
    came = {word for word in words_of_today() - then if not _is_in(later - {word}, word)}
    axes = {word for word in later if ".schedule=" in word}  # no options of a plug-in's own
    assert came == later - axes, "a word that came since must be in core/state_version.py:NEW_WORDS"


def test_no_word_went_since_a_release() -> None:
    """Models of releases use these words. A plug-in whose name ends would need an upgrade."""
    assert set(json.loads((GOLDEN / "words-9.json").read_text())) <= words_of_today()


def test_a_spec_has_the_oldest_version_that_has_all_its_words() -> None:
    assert Spec.parse({"drift": "hddm_a"}).state_version == ALIKE_SINCE
    for version, words in NEW_WORDS.items():
        for word in words if version > ALIKE_SINCE else ():
            part, _, inside = word.partition(".")
            name, _, parameter = inside.partition("=")[0].partition(".")
            body = {"name": name} | ({parameter: word.partition("=")[2]} if parameter else {})
            assert oldest_version({part: body if inside else 1}) == version, word


def _is_in(words: Set[str], word: str) -> bool:
    """Return whether words have what a word is a part of: its plug-in, or its parameter."""
    return any(word.startswith((f"{other}.", f"{other}=")) for other in words)


@pytest.mark.parametrize("version", [READABLE[0] - 1, STATE_VERSION + 1])
def test_a_spec_of_another_version_is_refused(version: int) -> None:
    with pytest.raises(ValueError, match=re.escape(f"version={version} must be one of {KNOWN};")):
        upgrade({}, version)


@pytest.mark.parametrize("version", READABLE)
def test_ufodt_answers_as_it_did(version: int) -> None:
    """Up to version 7 by the theta of the episode, and if it is asked alone by the posterior's mean."""
    before = version < 8
    learner: Any = Spec.parse({"learner": "ufodt"}, version).learner
    assert learner.prediction == ("bayes" if before else "posterior")
    assert learner.answer == ("mean" if before else "geometric")
    named: Any = Spec.parse({"learner": {"name": "ufodt", "answer": "sampled"}}, version).learner
    assert named.answer == "sampled"


@pytest.mark.parametrize(
    ("learner", "evidence"),
    [
        ("h-tree", "observed"),
        ({"name": "efdt-imac", "tau": 0.1}, "observed"),
        ({"name": "osm", "compat": "moa"}, "inherited"),
        ({"compat": "imac"}, "inherited"),
        ({"name": "c-tree", "evidence": "inherited"}, "inherited"),
    ],
)
def test_learners_of_version_4_have_the_evidence_they_had(learner: Any, evidence: str) -> None:
    assert Spec.parse({"learner": learner}, 4).learner.evidence == evidence


@pytest.mark.parametrize(
    ("learner", "evidence"),
    [
        ("h-tree", "inherited"),
        ("imac", "inherited"),
        ({"name": "c-tree", "variant": "theory"}, "observed"),
        ({"name": "c-tree", "variant": "theory", "evidence": "inherited"}, "inherited"),
        ("efdt", "observed"),
        ({"name": "efdt", "compat": "moa"}, "inherited"),
        ({"name": "h-tree", "compat": "moa", "evidence": "observed"}, "observed"),
    ],
)
def test_learners_of_today_have_the_evidence_of_their_preset_theorem_or_code(
    learner: Any, evidence: str
) -> None:
    assert Spec.parse({"learner": learner}).learner.evidence == evidence


LEAF_MODELS: list[tuple[Any, str, str]] = [
    ("imac", "mc", "nba"),
    ({"name": "osm"}, "mc", "nba"),
    ({"name": "cgd", "compat": "moa"}, "mc", "mc"),
    ("corrh-tree", "mc", "nba"),
    ("mcdiarmid_tree", "mc", "nba"),
    ({"name": "c-tree", "compat": "cdt"}, "mc", "mc"),
    ({"name": "c-tree", "leaf_model": "nb"}, "nb", "nb"),
    ("h-tree", "nba", "nba"),
    ("efdt-imac", "nba", "nba"),
]


@pytest.mark.parametrize(("learner", "then", "now"), LEAF_MODELS)
def test_presets_of_today_have_the_leaves_of_h_tree_but_with_compat(
    learner: Any, then: str, now: str
) -> None:
    """Before version 8 presets of papers voted by majority; models and members of then still do."""
    assert Spec.parse({"learner": learner}).learner.leaf_model.name == now
    assert Spec.parse({"learner": {"name": "arf", "member": learner}}).learner.member.leaf_model.name == now
    for version in range(4, 8):
        assert Spec.parse({"learner": learner}, version).learner.leaf_model.name == then
        forest = Spec.parse({"learner": {"name": "arf", "member": learner}}, version).learner
        assert forest.member.leaf_model.name == then


def test_a_forest_of_pairs_and_a_strategy_of_version_7_are_what_they_were() -> None:
    spec: dict[str, Any] = {"learner": "ufft", "query": "random"}
    assert Spec.parse(spec, 7).learner.step_share == 0.0
    assert Spec.parse(spec).learner.step_share == pytest.approx(1.0 / 6.0)
    spec = {"learner": "boct", "query": {"name": "boct_al", "delta": 0.1}}
    assert Spec.parse(spec, 7) == Spec.parse(spec)
    assert Spec.parse(spec).to_dict()["query"]["risk"] == "total"


LEAF_SCORES = [
    ("fixed_uncertainty", "least_confidence"),
    ("randomised_uncertainty", "least_confidence"),
    ("selective_sampling", "least_confidence"),
    ("split", "least_confidence"),
    ("variable_uncertainty", "least_confidence"),
    ("conf_tree", "leaf_share"),
    ("split_conf_tree", "leaf_share"),
]


@pytest.mark.parametrize(("query", "now"), LEAF_SCORES)
@pytest.mark.parametrize("version", range(4, 9))
def test_strategies_before_version_9_measure_doubt_at_the_leaf(query: str, now: str, version: int) -> None:
    scores = {
        Spec.parse({"query": given}, version).query.to_dict()["score"] for given in (query, {"name": query})
    }
    assert scores == {"leaf_share"}
    assert Spec.parse({"query": query}).query.to_dict()["score"] == now


@pytest.mark.parametrize("version", range(4, 9))
def test_a_rate_of_before_version_9_ranks_leaves_and_explores_a_tenth(version: int) -> None:
    before = Spec.parse({"query": "rate"}, version).query.to_dict()
    assert (before["score"], before["explore"], before["anneal"]) == ("variable_uncertainty", 0.1, 0)
    given = Spec.parse({"query": {"name": "rate", "score": "conf_tree", "explore": 0.5}}, version).query
    assert given == Spec.parse({"query": {"name": "rate", "score": "conf_tree", "explore": 0.5}}).query


@pytest.mark.parametrize("version", range(4, 9))
def test_a_spec_of_before_version_9_with_a_budget_and_no_strategy_asks_always(version: int) -> None:
    spec = {"budget": {"limit": 0.1}}
    assert Spec.parse(spec, version).query.name == "always"
    assert Spec.parse(spec).query.name == "ask"


@pytest.mark.parametrize("part", [7, None, [], {"name": 7}, "no-such"])
def test_a_part_that_means_nothing_is_left_as_it_is(part: object) -> None:
    """Only the strategy is written that a spec without one had."""
    assert upgrade({"learner": part}, 4) == {"learner": part, "query": {"name": "always"}}


@pytest.mark.parametrize(
    ("spec", "part", "name", "then", "now"),
    [
        ({"query": "fixed_uncertainty"}, "query", "cold_start", 0.0, 30.0),
        ({"query": {"name": "fixed_uncertainty", "threshold": 0.8}}, "query", "cold_start", 0.0, 30.0),
        ({"drift": "adwin"}, "drift", "keep_newer", False, True),
        ({"drift": {"name": "adwin", "confidence": 0.1}}, "drift", "keep_newer", False, True),
    ],
)
def test_what_a_spec_of_version_4_did_not_name(
    spec: dict[str, Any], part: str, name: str, then: object, now: object
) -> None:
    """No cold start of ``fixed_uncertainty``; an empty window after a drift that ADWIN found."""
    assert Spec.parse(spec, 4).to_dict()[part][name] == then
    assert Spec.parse(spec).to_dict()[part][name] == now
    assert Spec.parse({part: spec[part] if isinstance(spec[part], dict) else {"name": spec[part]}}, 4) == (
        Spec.parse(spec, 4)
    )


@pytest.mark.parametrize(
    ("part", "body", "name", "meant"),
    [
        ("learner", {"name": "efdt", "revisit_period": 1e-14}, "revisit_period", 1e-6),
        ("learner", {"name": "efdt", "revisit_period": 1e300}, "revisit_period", 1e12),
        ("learner", {"grace_period": 5e-324}, "grace_period", 1e-6),
        ("learner", {"schedule": "imac", "check_period": 1e13}, "check_period", 1e12),
        ("learner", {"max_leaves": 10**30}, "max_leaves", 10**12),
        ("budget", {"name": "window", "window": 10**15}, "window", 10**12),
        ("drift", {"name": "ddm", "warm_up": 10**15}, "warm_up", 10**12),
        ("evaluation", {"every": 10**15}, "every", 10**12),
    ],
)
def test_what_a_spec_of_version_4_named_beyond_the_bounds_of_today(
    part: str, body: dict[str, Any], name: str, meant: float
) -> None:
    """Its models go on; whoever writes such a spec today is told the bound."""
    assert Spec.parse({part: body}, 4).to_dict()[part][name] == meant
    with pytest.raises(ParameterError, match=rf"^{name}=.* must be at (least|most) "):
        Spec.parse({part: body})
    assert upgrade({part: {name: 0}}, 4)[part][name] == 0  # refused then as now


def test_every_bound_that_came_later_is_one_of_today() -> None:
    for limits in BOUNDED.values():
        for part, names in limits.items():
            for name, (low, high) in names.items():
                plugins = [EvaluationPlan] if part == "evaluation" else _plugins(part)
                fields = [
                    field for each in plugins for field in dataclasses.fields(each) if field.name == name
                ]
                assert fields, f"{part}.{name}"
                for field in fields:
                    assert field.metadata["rules"]["at most"] == high
                    assert field.metadata["rules"]["at least"] <= max(low, 1)


def _plugins(part: str) -> list[Any]:
    families = {"learner": ("learners", "schedules"), "budget": ("budgets",), "drift": ("drift",)}[part]
    return [registry.plugin(family, name) for family in families for name in registry.names(family)]
