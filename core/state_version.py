"""State versions: which releases' models can be resumed, and the meaning of older specs.

A version is raised whenever words of a model or parameters of a spec change their meaning. A model of an
older version keeps its meaning: its spec is upgraded when it is read. The upgrade adds the parameters that
the spec leaves out, with the values they had then. A change that adds a parameter or changes a default must
add a line to ``MEANT``.

State is written in the oldest version that has all words of its specs (`oldest_version`), so that workers of
two releases can share a group: an older release continues with the partitions that use none of the new words,
and stops the others. A word that is missing in ``NEW_WORDS`` would let it lose those models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from core.errors import ParameterError
from core.spelling import of_file

STATE_VERSION: Final = 10
"""The newest version that this release writes."""

ALIKE_SINCE: Final = 9
"""The oldest version in which specs and words of models have the meaning that they have in STATE_VERSION.

A change of a meaning or default, or of the words of models that use nothing new, raises it to STATE_VERSION;
then releases of earlier versions cannot go on with any partition that this release has written.
"""


def evidence_of_4(learner: Mapping[str, Any]) -> str:
    """Return the weight that bounds used in version 4: with a ``compat`` also inherited weight."""
    return "observed" if learner.get("compat") is None else "inherited"


Plugins = Mapping[str, Mapping[str, Any]]
"""By plug-in name (with ``_``): values of omitted parameters, constant or from the remaining parameters."""

LEARNERS_OF_4: Final = (
    "c_tree",
    "cgd",
    "corrh_tree",
    "efdt",
    "efdt_imac",
    "h_tree",
    "imac",
    "mcdiarmid_tree",
    "osm",
)

MAJORITY_LEAVES_OF_7: Final = ("c_tree", "cgd", "corrh_tree", "imac", "mcdiarmid_tree", "osm")
"""Learners whose leaves voted for their majority class if the spec named no leaf model."""

SCORED_AT_LEAVES_OF_8: Final = (
    "fixed_uncertainty",
    "randomised_uncertainty",
    "selective_sampling",
    "split",
    "variable_uncertainty",
)
"""Strategies that used the class shares at the leaf, whatever the answer was made of."""

MEANT: Final[Mapping[int, Mapping[str, Plugins]]] = {
    4: {
        "learner": {name: {"evidence": evidence_of_4} for name in LEARNERS_OF_4},
        "query": {"fixed_uncertainty": {"cold_start": 0.0}},
        "budget": {},
        "drift": {"adwin": {"keep_newer": False}},
    },
    5: {},
    6: {},
    7: {
        "learner": {name: {"leaf_model": "mc"} for name in MAJORITY_LEAVES_OF_7}
        | {"ufft": {"step_share": 0.0}, "ufodt": {"prediction": "bayes", "answer": "mean"}},
        "query": {"boct_al": {"risk": "total"}},
        "budget": {},
        "drift": {},
    },
    8: {
        "query": {name: {"score": "leaf_share"} for name in SCORED_AT_LEAVES_OF_8}
        | {"rate": {"score": "variable_uncertainty", "explore": 0.1}, "always": {}},
    },
    9: {},
}
"""Former values of parameters that a spec leaves out, by version and part of the spec.

A plug-in without such parameters is named here if it was the default: the upgrade writes its name.
"""

MEMBERS_SINCE: Final = 7
"""First version in which the learner parameters of ``MEANT`` apply to the members of forests, too."""

UNNAMED: Final[Mapping[int, Mapping[str, str]]] = {
    4: {"learner": "h-tree", "query": "always", "budget": "count", "drift": "none"},
    5: {"learner": "h-tree", "query": "always", "budget": "count", "drift": "none"},
    6: {"learner": "h-tree", "query": "always", "budget": "count", "drift": "none"},
    7: {"learner": "h-tree", "query": "always", "budget": "count", "drift": "none"},
    8: {"learner": "h-tree", "query": "always", "budget": "count", "drift": "none"},
    9: {"learner": "h-tree", "query": "always", "budget": "count", "drift": "none"},
}
"""By version: the plug-in of a part that a spec leaves out, or whose name it leaves out."""

_PERIOD: Final = (1e-6, 1e12)
_COUNT: Final = (1, 10**12)

BOUNDED: Final[Mapping[int, Mapping[str, Mapping[str, tuple[float, float]]]]] = {
    4: {
        "learner": {
            "grace_period": _PERIOD,
            "check_period": _PERIOD,
            "revisit_period": _PERIOD,
            "max_leaves": _COUNT,
        },
        "budget": {"window": _COUNT},
        "drift": dict.fromkeys(("warm_up", "clock", "min_part", "min_window", "min_errors"), _COUNT),
        "evaluation": {"every": _COUNT},
    },
}
"""Later bounds by version, part and parameter; values above 0 that are out of bounds are clipped."""

_SCORING: Final = (
    "conf_tree",
    "fixed_uncertainty",
    "randomised_uncertainty",
    "selective_sampling",
    "split",
    "split_conf_tree",
    "variable_uncertainty",
)

_SCHEDULED: Final = (*LEARNERS_OF_4, "hat", "hoeffding_adaptive_tree", "hoeffding_tree", "vfdt")

NEW_WORDS: Final[Mapping[int, frozenset[str]]] = {
    6: frozenset(
        {
            "acquire",
            "learner.arf",
            "learner.adaptive_random_forest",
            "learner.boct",
            "learner.hoeffding_tree",
            "learner.leveraging_bagging",
            "learner.majority_class",
            "learner.naive_bayes",
            "learner.no_change",
            "learner.srp",
            "learner.streaming_random_patches",
            "learner.ufft",
            "learner.ufodt",
            "learner.vfdt",
            "query.boct_al",
            "query.fixed_uncertainty.cold_start",
            "query.rate",
            "drift.adwin.compat",
            "drift.adwin.keep_newer",
            "drift.eddm.compat",
            "drift.page_hinkley.compat",
        }
    ),
    7: frozenset({"learner.hat", "learner.hoeffding_adaptive_tree"}),
    8: frozenset(
        {
            "learner.ufft.step_share",
            "learner.ufodt.answer",
            "learner.ufodt.prediction=posterior",
            "learner.ufodt.warm_up",
            "query.boct_al.risk",
        }
    ),
    9: frozenset(
        {
            "class_weights",
            *(f"drift.{name}" for name in ("cusum", "hddm_a", "hddm_w", "kswin", "rddm", "seed", "stepd")),
            "evaluation.per_class",
            "evaluation.worth",
            "query.ask",
            "query.rate.anneal",
            "query.rate.dependence",
            *(f"query.{name}.score" for name in _SCORING),
            *(
                f"query.rate.score={score}"
                for score in ("entropy", "leaf_share", "least_confidence", "margin", "votes")
            ),
        }
    ),
    10: frozenset(
        {
            "acquire=null",
            "calibration",
            "conformal",
            "query.set_size",
            "drift=null",
            "drift.input",
            "drift[]",
            "learner.efhat",
            "learner.extremely_fast_hoeffding_adaptive_tree",
            "learner.last",
            "learner.ozaboost",
            "learner.plastic",
            "learner.sgbt",
            "learner.streaming_gradient_boosted_trees",
            *(f"learner.{name}.schedule=change" for name in _SCHEDULED),
        }
    ),
}
"""By version: words of specs that all releases of earlier versions refused, as `_words` spells them."""

MEASURES_SINCE: Final = 9
"""First version whose models have measures per class and a learning curve: they count for ``max_bytes``."""

WITHOUT_CAP: Final = float(1 << 30)
"""The default of ``max_bytes``."""

READABLE: Final = (*MEANT, STATE_VERSION)
"""The versions that this release reads, ascending."""


def upgrade(spec: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return the current spec with the same meaning as a spec (a JSON object) of a version in READABLE.

    A part that is not valid stays as it is; `Spec.parse` refuses it. A second upgrade changes nothing.
    """
    if version not in READABLE:
        msg = f"version={version} must be one of {', '.join(map(str, READABLE))}; run the release of it"
        raise ValueError(msg)
    body = dict(spec)
    for older in READABLE[READABLE.index(version) : -1]:
        for part, plugins in MEANT[older].items():
            body = _complete(body, part, UNNAMED[older][part], plugins)
        if older >= MEMBERS_SINCE:
            body = _complete_member(body, UNNAMED[older]["learner"], MEANT[older].get("learner", {}))
        for part, limits in BOUNDED.get(older, {}).items():
            plugin = body.get(part)
            if isinstance(plugin, dict):
                body[part] = {name: _within(limits.get(name), value) for name, value in plugin.items()}
    return _without_measures(body) if version < MEASURES_SINCE else body


def oldest_version(spec: Mapping[str, Any]) -> int:
    """Return the oldest version from ALIKE_SINCE on that has all words of a spec (a JSON object)."""
    words = {word for part, value in spec.items() for word in _words(part, value, STATE_VERSION)}
    return max([ALIKE_SINCE, *(version for version, new in NEW_WORDS.items() if words & new)])


def rules_of(version: int) -> int:
    """Return the version whose rules apply to records of a journal that were written in a version.

    From ALIKE_SINCE on, the journal holds which controls were refused; what was accepted is accepted again.
    """
    return STATE_VERSION if version >= ALIKE_SINCE else version


def check_words(spec: Mapping[str, Any], version: int) -> None:
    """Raise ParameterError if a spec has a word that came after a version: its releases refused it."""
    words = {word for part, value in spec.items() for word in _words(part, value, version)}
    for later, new in NEW_WORDS.items():
        if later > version and (unknown := sorted(words & new)):
            msg = f"{unknown[0]} must be a word of state version {version}: it came with version {later}"
            raise ParameterError(msg)


def _words(part: str, value: Any, version: int) -> Iterator[str]:
    """Yield a part of a spec as words: ``part``, then with ``.plugin``, ``.parameter``, ``=value``."""
    yield part
    if value is None:
        yield f"{part}=null"
    if part == "drift" and isinstance(value, list):
        yield f"{part}[]"
        for detector in value:
            yield from _words(part, detector, version)
        return
    body = {"name": value} if isinstance(value, str) else value
    if not isinstance(body, dict) or part == "class_weights":
        return
    name, owner = body.get("name", UNNAMED.get(version, {}).get(part)), part
    if isinstance(name, str):
        owner = f"{part}.{of_file(name)}"
        yield owner
    for parameter, setting in body.items():
        yield f"{owner}.{parameter}"
        if isinstance(setting, str):
            yield f"{owner}.{parameter}={of_file(setting)}"
        if part == "learner" and parameter == "member":
            yield from _words("learner", setting, version)


def _without_measures(body: dict[str, Any]) -> dict[str, Any]:
    """Return a spec without measures per class and learning curve if its learner has a limit of bytes.

    They would take 1.6 KiB for two classes, and trees would stop growing earlier than they did.
    """
    learner, evaluation = body.get("learner"), body.get("evaluation", {})
    limit = learner.get("max_bytes", WITHOUT_CAP) if isinstance(learner, dict) else WITHOUT_CAP
    if not isinstance(limit, int | float) or limit >= WITHOUT_CAP or not isinstance(evaluation, dict):
        return body
    return body | {"evaluation": {"per_class": False, "worth": 0.0} | evaluation}


def _complete_member(body: dict[str, Any], unnamed: str, plugins: Plugins) -> dict[str, Any]:
    """Return a spec whose forest's member has the parameters that it left out."""
    learner = body.get("learner")
    if not isinstance(learner, dict) or "member" not in learner:
        return body
    member = _complete({"learner": learner["member"]}, "learner", unnamed, plugins)["learner"]
    return body | {"learner": learner | {"member": member}}


def _within(limits: tuple[float, float] | None, value: Any) -> Any:
    """Return the value of a parameter, clipped to its limits if it was legal without them."""
    if limits is None or not isinstance(value, int | float) or not value > 0:
        return value
    return min(max(value, limits[0]), limits[1])


def _complete(body: dict[str, Any], part: str, unnamed: str, plugins: Plugins) -> dict[str, Any]:
    """Return a spec whose plug-in of a part has the parameters that it left out."""
    plugin_spec = body.get(part, unnamed)
    named = {"name": plugin_spec} if isinstance(plugin_spec, str) else plugin_spec
    name = named.get("name", unnamed) if isinstance(named, dict) else None
    defaults = plugins.get(name.replace("-", "_")) if isinstance(name, str) else None
    if defaults is None:
        return body
    values = {key: value(named) if callable(value) else value for key, value in defaults.items()}
    return body | {part: {**values, **named, "name": name}}
