"""`docs/parameters.md`, made from the plug-ins; `grove config show --parameters` writes it."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

from core import class_weights, registry, spelling
from core.conformal.conformal_sets import Conformal
from core.learners.hoeffding.learner import AXES, HoeffdingLearner
from core.plugin import Parameters
from core.spec import MAX_SEED, EvaluationPlan, Spec
from core.tree import quirks
from streamapp.settings.tables import code, table

FAMILIES: Final[dict[str, tuple[str, str, str]]] = {
    "learners": (
        "Presets",
        "`learner.name`",
        "A preset is a tree with chosen parts, which parameters replace. Other learners are no trees.",
    ),
    "criteria": ("Split criteria", "`learner.criterion`", "A criterion is the measure of a split's quality."),
    "bounds": (
        "Bounds",
        "`learner.bound`",
        "A bound is the confidence with which the best split must be the best.",
    ),
    "schedules": (
        "Schedules",
        "`learner.schedule`",
        "A schedule sets the times at which a leaf attempts to split.",
    ),
    "observers": (
        "Attribute observers",
        "`learner.numeric_observer`, `learner.nominal_observer`",
        "An observer holds a leaf's statistics of an attribute.",
    ),
    "leaf_models": ("Leaf models", "`learner.leaf_model`", "A leaf model predicts the class at a leaf."),
    "queries": (
        "Query strategies",
        "`query`",
        "A strategy decides whether a label is worth a request, while the budget is open.",
    ),
    "budgets": ("Budgets", "`budget`", "A budget limits the label requests."),
    "acquirers": (
        "Acquirers",
        "`acquire`",
        "An acquirer chooses the features to buy before a record is answered ([feature-acquisition.md]"
        "(feature-acquisition.md)).",
    ),
    "drift": ("Drift detectors", "`drift`", "A detector watches the errors; the model reacts to a drift."),
    "inputs": (
        "Input detectors",
        '`drift`, in a list beside a drift detector: `["adwin", {"name": "input"}]`',
        "An input detector compares the inputs with earlier ones, without labels ([drift.md](drift.md)).",
    ),
    "calibrators": (
        "Calibrators",
        "`calibration`",
        "A calibrator corrects class shares by the labels: answers with the probability 0.8 are right in "
        "four fifths of the records ([probabilities.md](probabilities.md)).",
    ),
}
"""The families in the order of the page: title, place of the name in a spec, description."""

INTRODUCTION: Final = """# Parameters of a model

*Made by `grove config show --parameters > docs/parameters.md`; a test compares it with the code.*

The spec of a model is a JSON object (settings: `model.spec`; topic `controls`; `--spec` of `grove
prequential`). Each part is a name, or an object with a `name` and parameters; missing parts have their
default:

```json
{"learner": {"name": "c-tree", "c": 0.1, "grace_period": 200}, "query": "split",
 "budget": {"name": "count", "limit": 0.1}, "drift": {"name": "ddm", "warning": 2.5},
 "evaluation": {"share": 0.01}, "seed": 7}
```

The parameters of a learner's axes (criterion, bound, schedule, observers, leaf model) stand beside the
learner's own. A value that is out of range, unknown or at odds with another value is refused, with the rule
and the remedy. The differences of trees are in [trees.md](trees.md), strategies and budgets in
[active-learning.md](active-learning.md).
"""

PARTS: Final = {"drift": "drift"}
"""Parameters of learners that name a plug-in with its own parameters, and the families of these plug-ins."""

HEAD: Final = ("parameter", "values", "default", "meaning")
Row = tuple[str, str, str, str]


def page() -> str:
    """The whole page, with a final line end."""
    parts = [INTRODUCTION, "\n## The spec\n\n", table(HEAD, _spec_rows())]
    for family, (title, place, meaning) in FAMILIES.items():
        parts.append(f"\n## {title}\n\n{place}. {meaning}\n")
        common = _common(family)
        if common:
            who = "All trees" if family == "learners" else f"All {title.lower()}"
            parts += [f"\n{who}:\n\n", table(HEAD, common.values())]
        if family == "learners":
            parts += ["\nThe quirks of each `compat` (core/tree/quirks.py):\n\n", _quirks()]
        for name in registry.names(family):
            module = registry.module(family, name)
            is_alike = family != "learners" or issubclass(module.Plugin, HoeffdingLearner)
            parts += _variant(family, module, common if is_alike else {})
    return "".join(parts)


def _quirks() -> str:
    """The table of differences of published codes, by ``compat``."""
    compats = [compat for compat in quirks.OF_COMPAT if compat]
    names = {value: name.lower() for name, value in vars(quirks).items() if isinstance(value, int)}
    return table(
        ("quirk", *map(code, compats), "meaning"),
        (
            (
                code(names[bit]),
                *("yes" if quirks.OF_COMPAT[compat] & bit else "" for compat in compats),
                meaning,
            )
            for bit, meaning in quirks.MEANINGS.items()
        ),
    )


def rows_of(plugin: Any) -> dict[str, Row]:
    """Return the row of each parameter of a plug-in."""
    meanings = documented(plugin)
    return {
        field.name: (f"`{field.name}`", _values(field), code(field.default), meanings.get(field.name, ""))
        for field in dataclasses.fields(plugin)
    }


@functools.cache
def documented(plugin: type) -> dict[str, str]:
    """Return the docstring of each parameter, from the nearest class that documents it."""
    texts: dict[str, str] = {}
    for owner in (base for base in reversed(plugin.__mro__) if issubclass(base, Parameters)):
        (definition,) = ast.parse(inspect.cleandoc(inspect.getsource(owner))).body
        assert isinstance(definition, ast.ClassDef)
        for declared, behind in itertools.pairwise(definition.body):
            match declared, behind:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=text)):
                    texts[name] = " ".join(str(text).split()).replace("``", "`")
    return texts


def source_of(module: ModuleType) -> str:
    """Return the publications that the docstrings of a plug-in cite."""
    text = " ".join(f"{module.__doc__} {module.Plugin.__doc__}".split())
    sources = []
    for parenthesis in re.findall(r"\(((?:[^()]|\([^()]*\))*\b(?:19|20)\d\d\b(?:[^()]|\([^()]*\))*)\)", text):
        cited = [part for part in parenthesis.split("; ") if re.search(r"\b(19|20)\d\d\b", part)]
        sources += [part.replace("``", "`") for part in cited]
    return "; ".join(dict.fromkeys(sources))


def _spec_rows() -> Iterator[Row]:
    defaults = Spec.parse()
    for part, family in {
        "learner": "learners",
        "query": "queries",
        "budget": "budgets",
        "drift": "drift",
    }.items():
        title = FAMILIES[family][0].lower()
        see = f"See [{title}](#{title.replace(' ', '-')})."
        values = "`null`, name, object or list of both detectors" if part == "drift" else "name or object"
        yield f"`{part}`", values, code(getattr(defaults, part).spelled), see
    for name, (_, values, default, meaning) in rows_of(EvaluationPlan).items():
        yield f"`evaluation.{name}`", values, default, meaning
    what = "Seed of all random numbers: strategies, the reserved share."
    yield "`seed`", f"0 to {MAX_SEED}", code(defaults.seed), what
    most = "Most classes of a model; two if the criterion or the bound is for two classes."
    yield "`max_classes`", "1 to 32,767", code(defaults.max_classes), most
    paths = "Predictions come with the path of tests that led to them."
    yield "`explain`", "`true`, `false`", code(defaults.explain), paths
    rules = ", ".join(f'`"{rule}"`' for rule in class_weights.RULES)
    weigh = "Weights of labels by class ([rare classes](active-learning.md#rare-classes))."
    yield "`class_weights`", f"`null`, {rules}, object", code(defaults.class_weights), weigh
    title = FAMILIES["calibrators"][0].lower()
    yield "`calibration`", "`null`, name or object", code(defaults.calibration), f"See [{title}](#{title})."
    sets = "Answers have conformal sets ([probabilities.md](probabilities.md)), by these parameters:"
    yield "`conformal`", "`null`, object", code(defaults.conformal), sets
    for name, (_, values, default, meaning) in rows_of(Conformal).items():
        yield f"`conformal.{name}`", values, default, meaning


def _common(family: str) -> dict[str, Row]:
    """Return the rows of parameters that all plug-ins of a family have, with the most frequent default."""
    first, *others = (rows_of(registry.plugin(family, name)) for name in registry.names(family))
    if family == "learners":
        return rows_of(HoeffdingLearner)
    if family == "criteria":  # plug-ins with another default get their own row
        return first
    is_alike = family in {"drift", "budgets", "inputs", "calibrators"}
    return {name: row for name, row in first.items() if is_alike and all(name in other for other in others)}


def _variant(family: str, module: ModuleType, common: dict[str, Row]) -> Iterator[str]:
    plugin, name = module.Plugin, module.__name__.rpartition(".")[2]
    text = (module.__doc__ or "").splitlines()[0]
    yield f"\n### `{spelling.of_spec(family, name)}`\n\n{text}\n"
    source = source_of(module)
    if source:
        yield f"\nSource: {source}.\n"
    # Parameters that not all plug-ins of the family have, or that have another default.
    rows = [row for name, row in rows_of(plugin).items() if name not in common or common[name][2] != row[2]]
    if getattr(plugin, "compats", HoeffdingLearner.compats) != HoeffdingLearner.compats:
        meaning = documented(HoeffdingLearner)["compat"]
        rows.append(("`compat`", ", ".join(map(code, plugin.compats)), "`null`", meaning))
    if rows:
        yield "\n" + table(HEAD, rows)
    changed = getattr(plugin, "axis_defaults", {})
    if changed:
        listed = ", ".join(f"`{key}` {code(value)}" for key, value in changed.items())
        yield f"\nDefaults of its axes: {listed}.\n"


def _values(field: dataclasses.Field[Any]) -> str:
    metadata = field.metadata
    if field.name in AXES and "options" not in field.metadata:
        names = registry.names(AXES[field.name])
        if AXES[field.name] == "observers":
            update = f"update_{field.name.partition('_')[0]}"
            names = tuple(name for name in names if hasattr(registry.module("observers", name), update))
        return ", ".join(map(code, names))
    if field.name == "member":
        return "name or object of a tree"
    if field.name in PARTS and not metadata:
        return ", ".join(map(code, registry.names(PARTS[field.name])))
    if "options" in metadata:
        return ", ".join(map(code, metadata["options"]))
    if metadata["type"] is bool:
        return "`true`, `false`"
    words = "integer" if metadata["type"] is int else "number"
    signs = {"at least": "≥", "above": ">", "at most": "≤", "below": "<"}
    rules = metadata["rules"].items()
    return ", ".join([words, *(f"{signs[rule]} {limit:,}" for rule, limit in rules if limit is not None)])
