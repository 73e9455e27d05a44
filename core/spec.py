"""Spec: everything about a model that is not its schema, as one JSON object.

    {"learner": {"name": "h-tree", "grace_period": 100}, "query": {"name": "random"},
     "budget": {"name": "count", "limit": 0.1}, "drift": {"name": "ddm"},
     "evaluation": {"window": 1000, "every": 1000, "share": 0.0, "per_class": true, "worth": 0.005},
     "seed": 1, "max_classes": 64, "explain": false, "acquire": {"name": "path"}, "class_weights": "balanced",
     "calibration": "platt", "conformal": {"alpha": 0.1}}

With ``explain`` every prediction comes with the path of branches that led to it, which costs a few
microseconds each. Every part may be left out. A part may be its name alone. The name of a learner alone is a
spec too: the preset of that learner. Unknown names and parameters are refused with a list of the valid names.
``acquire`` names the acquirer, which decides which features of a record are bought before it is answered. Its
default depends on the learner; for most learners it is ``none``, which ``to_dict`` then leaves out. ``query``
is ``always`` by default, and ``ask`` with a budget below 100 %; ``evaluation.worth`` is 0 by default, and
0.005 with such a budget.
``class_weights`` are the weights of labels by class (core/class_weights.py); by default there are none.
``drift`` may be a list: a detector of errors, and an input detector, as ``["adwin", {"name": "input"}]``.
``calibration`` names the calibrator of the probabilities (core/publishing/published_answers.py), and
``conformal`` has the parameters of conformal sets (core/conformal/conformal_sets.py); by default there is
neither, and ``to_dict`` leaves them out. The strategy ``set_size`` needs sets: ``{"alpha": 0.1}`` by default.
``max_classes`` is lowered to the number of classes that the learner supports (two with criterion km).
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from dataclasses import dataclass
from typing import Any

from core import class_weights, registry, spelling
from core.active.acquirers import none
from core.active.acquirers.base import Acquirer
from core.active.budgets.base import Budget
from core.active.queries.base import Query
from core.calibrators.base import Calibrator
from core.class_weights import ClassWeights
from core.conformal.conformal_sets import Conformal
from core.drift.base import Detector
from core.errors import ParameterError, SpecError, UnknownPluginError
from core.inputs import none as no_inputs
from core.inputs.base import InputDetector
from core.json_text import DeepError, read_json
from core.learners.protocol import build
from core.plugin import Parameters, check, count, flag, made_of, number
from core.state_version import STATE_VERSION, oldest_version, upgrade

DEFAULTS = {"learner": "h-tree", "query": "always", "budget": "count", "drift": "none", "acquire": "none"}
SCARCE = "ask"
"""The query strategy of a spec that names none and whose budget has a limit below 1."""
WORTH = 0.005
"""``evaluation.worth`` of a spec that has none and whose budget has a limit below 1."""
FAMILIES = {
    "query": "queries",
    "budget": "budgets",
    "drift": "drift",
    "inputs": "inputs",
    "acquire": "acquirers",
    "calibration": "calibrators",
}
NOTHING_BOUGHT = none.Plugin()
NOT_WATCHED = no_inputs.Plugin()
MAX_SEED = (1 << 63) - 1
MAX_DEPTH = 32
"""Most levels of objects and arrays in a spec: far more than needed, far fewer than the stack has."""


@dataclass(frozen=True, slots=True)
class EvaluationPlan(Parameters):
    """Prequential evaluation: a ``window`` of predictions, and an event after ``every`` labels (0: never).

    The label of a ``share`` of the records is requested at random, independently of their features and within
    the budget. They give an estimate of the accuracy without the bias of a strategy that prefers hard
    records.
    """

    window: int = count(1000, at_least=1, at_most=1_000_000)
    """Number of predictions with a known label that the windowed measures cover."""
    every: int = count(1000, at_least=0)
    """Labels that a model learns between two evaluations; 0: no evaluations."""
    share: float = number(0.0, at_least=0.0, at_most=1.0)
    """Share of the records whose label is requested at random for the evaluation; at most `budget.limit`."""
    per_class: bool = flag(True)
    """Whether the model keeps the sums of the measures per class: 1.1 KiB for two classes, 9 KiB for ten."""
    worth: float = number(0.0, at_least=0.0, at_most=1.0)
    """Gain of accuracy for which 500 more labels are worth their cost; 0: the model keeps no learning curve
    of 496 bytes. With a `budget.limit` below 1 the default is 0.005.
    """

    @property
    def slice(self) -> int:
        """Length of the blocks in each of which one record is reserved, rounded up; 0: none."""
        return math.ceil(round(1.0 / self.share, 9)) if self.share > 0.0 else 0


@dataclass(frozen=True, slots=True)
class Spec:
    """A checked model spec; equal specs compare equal and have equal hashes."""

    learner: Any
    """A Learner (core/learners/protocol.py); its file documents its parameters."""
    query: Query
    budget: Budget
    drift: Detector
    evaluation: EvaluationPlan
    seed: int = 1
    max_classes: int = 64
    explain: bool = False
    acquire: Acquirer = NOTHING_BOUGHT
    class_weights: ClassWeights = None
    """Weights of labels by class (core/class_weights.py)."""
    inputs: InputDetector = NOT_WATCHED
    """The input detector; JSON has it in the list ``drift``, after the detector of errors."""
    calibration: Calibrator | None = None
    """Calibrator of the probabilities; None: they are the learner's class shares."""
    conformal: Conformal | None = None
    """Parameters of conformal sets; None: answers have no sets."""

    @property
    def acquirer(self) -> Acquirer | None:
        """The plug-in that buys features of a record before it is answered; None: features are not bought."""
        return self.acquire if self.acquire.buys else None

    @property
    def most_blocks(self) -> int:
        """Most blocks of a model at a time: two if the drift reaction is to rebuild the tree, else one."""
        return 2 if self.drift.name != "none" and self.drift.reaction == "rebuild" else 1

    @property
    def state_version(self) -> int:
        """The oldest state version that has all words of the spec: its models are written in it."""
        return _state_version(self)

    @staticmethod
    def parse(
        source: str | bytes | dict[str, Any] | Spec | None = None, state_version: int | None = None
    ) -> Spec:
        """Return the spec of a JSON text, an object, a preset's name, or (None) the defaults.

        ``state_version``: the state version of the release that stored the spec, which keeps the meaning that
        it had in that release. None: the spec is not stored yet, and ``check_together`` applies.
        """
        if isinstance(source, Spec):
            return source
        if state_version is None:
            spec = Spec.parse(source, STATE_VERSION)
            spec.check_together()
            return spec
        if source is None:
            source = {}
        if isinstance(source, dict):
            return _build(_shallow(source, state_version))
        text = source.decode() if isinstance(source, bytes) else source
        if not text.lstrip().startswith(("{", "[", '"')):
            return _build(_shallow({"learner": text.strip()}, state_version))
        try:
            body = read_json(text)
        except DeepError:
            raise SpecError(too_deep("spec")) from None
        except ValueError as error:
            msg = f"spec={text[:80]!r} must be a JSON object or the name of a learner: {error}"
            raise SpecError(msg) from error
        if not isinstance(body, dict):
            msg = f"spec={text[:80]!r} must be a JSON object or the name of a learner without quotes"
            raise SpecError(msg)
        return _build(_shallow(body, state_version))

    def check_together(self) -> None:
        """Raise ParameterError for detectors whose parameters together keep them from their work."""
        for detector in (self.drift, *dict(self.learner.plugins()).values()):
            if isinstance(detector, Detector):
                detector.check_together()

    def to_dict(self) -> dict[str, Any]:
        """Return the spec with every parameter written out.

        Class weights, calibration and sets are left out if there are none, and an acquirer that buys nothing
        unless the default of the learner buys features.
        """
        body = {
            "learner": self.learner.to_dict(),
            "query": self.query.to_dict(),
            "budget": self.budget.to_dict(),
            "drift": self._detectors(),
            "evaluation": {
                f.name: getattr(self.evaluation, f.name) for f in dataclasses.fields(self.evaluation)
            },
            "seed": self.seed,
            "max_classes": self.max_classes,
            "explain": self.explain,
        }
        # Specs written before acquirers existed keep their text.
        is_said = self.acquire.buys or self.learner.acquirer is not None
        if is_said:
            body["acquire"] = self.acquire.to_dict()
        if self.class_weights is not None:
            body["class_weights"] = class_weights.as_json(self.class_weights)
        if self.calibration is not None:
            body["calibration"] = self.calibration.to_dict()
        if self.conformal is not None:
            body["conformal"] = self.conformal.to_dict()
        return body

    def _detectors(self) -> dict[str, Any] | list[dict[str, Any]]:
        """Return the detector of errors; with an input detector a list of both."""
        errors = self.drift.to_dict()
        return errors if self.inputs == NOT_WATCHED else [errors, self.inputs.to_dict()]

    def to_json(self) -> str:
        """Return canonical JSON: parsing it gives an equal spec, and equal specs give equal text."""
        return _canonical(self.to_dict())


def presets() -> tuple[str, ...]:
    """Return the names that are complete specs: the names of the learners."""
    return tuple(spelling.of_spec("learners", name) for name in registry.names("learners"))


def is_deep(document: Any) -> bool:
    """Return whether JSON is nested deeper than ``MAX_DEPTH`` levels, without recursion."""
    level = [document]
    for _ in range(MAX_DEPTH + 1):
        nested = [branch for branch in level if isinstance(branch, dict | list)]
        level = [
            part for branch in nested for part in (branch.values() if isinstance(branch, dict) else branch)
        ]
        if not nested:
            return False
    return True


def too_deep(name: str) -> str:
    """Return the error text for JSON that ``is_deep``."""
    return (
        f"{name}=… must be nested at most {MAX_DEPTH} levels deep; leave out the objects and arrays inside it"
    )


def _shallow(body: dict[str, Any], state_version: int) -> str:
    if is_deep(body):
        raise SpecError(too_deep("spec"))
    return _canonical(upgrade(body, state_version))


def _canonical(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


@functools.lru_cache(maxsize=1024)
def _state_version(spec: Spec) -> int:
    return oldest_version(spec.to_dict())


@functools.lru_cache(maxsize=1024)
def _build(text: str) -> Spec:
    body = json.loads(text)
    part_names = {f.name for f in dataclasses.fields(Spec)} - {"inputs"}
    for name in body:
        if name not in part_names:
            msg = f"{name}={body[name]!r} is no part of a spec; {spelling.known(name, sorted(part_names))}"
            raise ParameterError(msg)
    parts = {part: _named(part, body.get(part, {})) for part in DEFAULTS if part != "drift"}
    parts["drift"], parts["inputs"] = _detectors(body.get("drift", {}))
    parts["query"] = _query_of(parts)
    evaluation = body.get("evaluation", {})
    if not isinstance(evaluation, dict):
        names = "'window', 'every', 'share', 'per_class' and 'worth'"
        msg = f"evaluation={evaluation!r} must be an object with {names}"
        raise ParameterError(msg)
    if _is_scarce(parts):
        evaluation = {"worth": WORTH} | evaluation
    learner = build(parts["learner"])
    own = None if "acquire" in body else learner.acquirer
    max_classes = check(
        "max_classes",
        body.get("max_classes", 64),
        {"type": int, "rules": {"at least": 1, "at most": 32767}},
    )
    query = _plugin("query", parts["query"])
    spec = Spec(
        learner=learner,
        query=query,
        budget=_plugin("budget", parts["budget"]),
        drift=_plugin("drift", parts["drift"]),
        inputs=_plugin("inputs", parts["inputs"]),
        evaluation=made_of(EvaluationPlan, evaluation, "evaluation"),
        seed=check("seed", body.get("seed", 1), {"type": int, "rules": {"at least": 0, "at most": MAX_SEED}}),
        max_classes=min(max_classes, learner.max_classes or max_classes),
        explain=check("explain", body.get("explain", False), {"type": bool, "rules": {}}),
        acquire=own or _plugin("acquire", parts["acquire"]),
        class_weights=class_weights.checked(body.get("class_weights"), learner),
        calibration=_calibration(body.get("calibration")),
        conformal=_conformal(body, query),
    )
    spec.acquire.check(learner)
    spec.query.check(learner)
    if spec.evaluation.share > spec.budget.limit:
        msg = (
            f"evaluation.share={spec.evaluation.share} must be at most budget.limit={spec.budget.limit}: "
            "evaluation requests its labels within the budget"
        )
        raise ParameterError(msg)
    return spec


def _calibration(value: Any) -> Calibrator | None:
    """Return the calibrator of a spec."""
    if value is None:
        return None
    body = {"name": value} if isinstance(value, str) else value
    is_named = isinstance(body, dict) and isinstance(body.get("name"), str)
    if not is_named or body["name"] in ("", "none"):
        names = ", ".join(map(repr, registry.names("calibrators")))
        msg = f"calibration={value!r} must be null, {names}, or an object with one of these as 'name'"
        raise ParameterError(msg)
    calibrator: Calibrator = _plugin("calibration", body)
    return calibrator


def _conformal(body: dict[str, Any], query: Query) -> Conformal | None:
    """Return the parameters of the sets of a spec; a strategy that needs sets has the default ones."""
    value = body.get("conformal", {} if query.needs_sets else None)
    if value is None:
        if query.needs_sets:
            msg = f"conformal=null must be an object with query={query.spelled!r}: leave it out for alpha=0.1"
            raise ParameterError(msg)
        return None
    if not isinstance(value, dict):
        msg = f"conformal={value!r} must be null or an object, such as {{'alpha': 0.1}}"
        raise ParameterError(msg)
    sets: Conformal = made_of(Conformal, value, "conformal")
    return sets


def _named(part: str, value: Any) -> dict[str, Any]:
    if value is None and DEFAULTS[part] == "none":
        value = "none"
    body = {"name": value} if isinstance(value, str) else value
    if not isinstance(body, dict) or not isinstance(body.get("name", DEFAULTS[part]), str):
        msg = f"{part}={value!r} must be a name or an object with a 'name'"
        raise ParameterError(msg)
    return body if part == "query" else {"name": DEFAULTS[part]} | body


def _detectors(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the detector of errors and the input detector that the part ``drift`` names."""
    detectors = [_named("drift", body) for body in (value if isinstance(value, list) else [value])]
    files = {family: registry.names(family) for family in ("drift", "inputs")}
    chosen: dict[str, list[dict[str, Any]]] = {"drift": [], "inputs": []}
    for detector in detectors:
        name = spelling.of_file(detector["name"])
        family = "inputs" if name in files["inputs"] and name not in files["drift"] else "drift"
        if family == "drift" and name not in files["drift"]:
            both = sorted({*files["drift"], *files["inputs"]})
            msg = f"unknown drift detector {detector['name']!r}; {spelling.known(name, both)}"
            raise UnknownPluginError(msg)
        chosen[family].append(detector)
    for family, kind in (("drift", "detector of errors"), ("inputs", "input detector")):
        if len(chosen[family]) > 1:
            names = ", ".join(repr(detector["name"]) for detector in chosen[family])
            msg = f"drift={names} must name at most one {kind}; leave the others out"
            raise ParameterError(msg)
    (errors,), (inputs,) = (chosen[family] or [{"name": "none"}] for family in ("drift", "inputs"))
    return errors, inputs


def _is_scarce(parts: dict[str, dict[str, Any]]) -> bool:
    """Return whether the budget of a spec has a limit below 1."""
    limit = parts["budget"].get("limit", 1.0)
    return isinstance(limit, int | float) and limit < 1.0


def _query_of(parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the strategy of a spec with the defaults that depend on other parts.

    Below a limit of 1 the strategy is ``ask`` unless the spec names one. The score is ``votes`` if the spec
    names none and its forest has ``"uncertainty": "votes"``.
    """
    query = parts["query"]
    if "name" not in query:
        query = {"name": SCARCE if _is_scarce(parts) else DEFAULTS["query"]} | query
    if parts["learner"].get("uncertainty") == "votes":
        plugin = registry.plugin("queries", query["name"])
        if any(field.name == "score" for field in dataclasses.fields(plugin)):
            query = {"score": "votes"} | query
    return query


def _plugin(part: str, body: dict[str, Any]) -> Any:
    parameters = dict(body)
    name = parameters.pop("name")
    return made_of(registry.plugin(FAMILIES[part], name), parameters, name)
