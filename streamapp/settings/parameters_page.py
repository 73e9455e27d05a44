"""`docs/parameters.md`, made from the plug-ins themselves; `grove config show --parameters` writes it."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from core import registry
from core.learners.base import AXES, Learner
from core.plugin import Parameters
from core.spec import MAX_SEED, EvaluationPlan, Spec

FAMILIES: Final[dict[str, tuple[str, str, str]]] = {
    "learners": (
        "Presets",
        "`learner.name`",
        "What a tree is by its name; all it is made of can be named beside it.",
    ),
    "criteria": ("Split criteria", "`learner.criterion`", "How good a split is."),
    "bounds": ("Bounds", "`learner.bound`", "How sure it must be that the best split is the best."),
    "schedules": ("Schedules", "`learner.schedule`", "When a leaf makes an attempt to split."),
    "observers": (
        "Attribute observers",
        "`learner.numeric_observer`, `learner.nominal_observer`",
        "What a leaf keeps of its records.",
    ),
    "leaf_models": ("Leaf models", "`learner.leaf_model`", "How a leaf predicts."),
    "queries": (
        "Query strategies",
        "`query`",
        "Whether a label is worth asking for, while the budget is open.",
    ),
    "budgets": ("Budgets", "`budget`", "Whether a label may be asked for at all."),
    "drift": ("Drift detectors", "`drift`", "What watches the errors, and what is done about a drift."),
}
"""The families in the order of the page: title, where a spec names one, what they are."""

INTRODUCTION: Final = """# Parameters of a model

*Made by `grove config show --parameters > docs/parameters.md`; a test compares it with the code.*

The spec of a model is a JSON object (settings: `model.spec`; topic `controls`; `--spec` of `grove
prequential`). Each part is a name, or an object with a `name` and parameters; what is left out has its
default:

```json
{"learner": {"name": "c-tree", "c": 0.1, "grace_period": 200}, "query": "split",
 "budget": {"name": "count", "limit": 0.1}, "drift": {"name": "ddm", "warning": 2.5},
 "evaluation": {"share": 0.01}, "seed": 7}
```

The parameters of a learner's axes (criterion, bound, schedule, observers, leaf model) stand beside the
learner's own. What is out of range, unknown, or does not go together is refused with the rule and the remedy.
How trees differ is in [trees.md](trees.md), strategies and budgets are in
[active-learning.md](active-learning.md).
"""

HEAD: Final = "| parameter | values | default | meaning |\n|---|---|---|---|\n"


def page() -> str:
    """The whole page, with a closing line end."""
    parts = [INTRODUCTION, "\n## The spec\n\n", HEAD]
    parts += [_row(*row) for row in _spec_rows()]
    for family, (title, place, meaning) in FAMILIES.items():
        parts.append(f"\n## {title}\n\n{place}. {meaning}\n")
        common = _common(family)
        if common:
            rows = [
                _row(f"`{each.name}`", _values(each), _default(each), meaning_of(each)) for each in common
            ]
            parts += ["\nAll of them:\n\n", HEAD, *rows]
        for name in registry.names(family):
            parts += _variant(family, registry.module(family, name), common)
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A field of a plug-in, of the class that declares it."""

    owner: type
    field: dataclasses.Field[Any]

    @property
    def name(self) -> str:
        """The field's name."""
        return self.field.name


def parameters(plugin: type) -> list[Parameter]:
    """Return the parameters of a plug-in, each with the nearest class that says what it means."""
    found = []
    for field in dataclasses.fields(plugin):
        owners = [base for base in plugin.__mro__ if field.name in documented(base)]
        found.append(Parameter(owners[0] if owners else plugin, field))
    return found


@functools.cache
def documented(owner: type) -> dict[str, str]:
    """Return what a class says of its fields: the strings behind them in its source."""
    if not issubclass(owner, Parameters):
        return {}
    (definition,) = ast.parse(inspect.cleandoc(inspect.getsource(owner))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for declared, behind in zip(definition.body, definition.body[1:], strict=False):
        is_text = isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant)
        if isinstance(declared, ast.AnnAssign) and isinstance(declared.target, ast.Name) and is_text:
            assert isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant)
            found[declared.target.id] = " ".join(str(behind.value.value).split())
    return found


def meaning_of(parameter: Parameter) -> str:
    """Return what a parameter means, in one sentence."""
    return documented(parameter.owner).get(parameter.name, "").replace("``", "`")


def source_of(module: ModuleType) -> str:
    """Return where a plug-in was published, as its docstrings say."""
    text = " ".join(f"{module.__doc__} {module.Plugin.__doc__}".split())
    found = []
    for given in re.findall(r"\(((?:[^()]|\([^()]*\))*\b(?:19|20)\d\d\b(?:[^()]|\([^()]*\))*)\)", text):
        cited = [part for part in given.split("; ") if re.search(r"\b(19|20)\d\d\b", part)]
        found += [
            re.sub(r"^ALGORITHMS section.*?, (?=\w+ et al)", "", part).replace("``", "`") for part in cited
        ]
    return "; ".join(dict.fromkeys(found))


def _spec_rows() -> Iterator[tuple[str, str, str, str]]:
    defaults = Spec.parse()
    for part in ("learner", "query", "budget", "drift"):
        name = getattr(defaults, part).name.replace("_", "-" if part == "learner" else "_")
        yield f"`{part}`", "name or object", f"`{name}`", f"See {_link(part)}."
    for each in parameters(EvaluationPlan):
        yield f"`evaluation.{each.name}`", _values(each), _default(each), meaning_of(each)
    yield (
        "`seed`",
        f"0 to {MAX_SEED}",
        f"`{defaults.seed}`",
        "Of all that is random: strategies, the reserved share.",
    )
    most = "Classes of a model at most; two where criterion or bound is for two."
    yield "`max_classes`", "1 to 32,767", f"`{defaults.max_classes}`", most
    told = "Predictions come with the path of tests that led to them."
    yield "`explain`", "`true`, `false`", f"`{str(defaults.explain).lower()}`", told


def _link(part: str) -> str:
    family = {"learner": "learners", "query": "queries", "budget": "budgets", "drift": "drift"}[part]
    title = FAMILIES[family][0]
    return f"[{title.lower()}](#{title.lower().replace(' ', '-')})"


def _common(family: str) -> list[Parameter]:
    """Return the parameters that every plug-in of a family has, as most of them have them."""
    plugins = [registry.plugin(family, name) for name in registry.names(family)]
    if family == "learners":
        return parameters(Learner)
    if family == "criteria":  # the one that has another default says so itself
        return parameters(plugins[0])
    shared = set.intersection(*({field.name for field in dataclasses.fields(each)} for each in plugins))
    return (
        [each for each in parameters(plugins[0]) if each.name in shared]
        if family in {"drift", "budgets"}
        else []
    )


def _variant(family: str, module: ModuleType, common: list[Parameter]) -> Iterator[str]:
    plugin, name = module.Plugin, module.__name__.rpartition(".")[2]
    shown = name.replace("_", "-") if family == "learners" else name
    text = (module.__doc__ or "").splitlines()[0]
    yield f"\n### `{shown}`\n\n{text}\n"
    source = source_of(module)
    if source:
        yield f"\nSource: {source}.\n"
    rows = [
        _row(f"`{each.name}`", _values(each), _default(each), meaning_of(each))
        for each in parameters(plugin)
        if _is_own(each, common)
    ]
    if getattr(plugin, "compats", Learner.compats) != Learner.compats:
        meaning = documented(Learner)["compat"]
        rows.append(_row("`compat`", ", ".join(map(_shown, plugin.compats)), "`null`", meaning))
    if rows:
        yield "\n" + HEAD
        yield from rows
    changed = getattr(plugin, "axis_defaults", {})
    if changed:
        listed = ", ".join(f"`{key}` {_shown(value)}" for key, value in changed.items())
        yield f"\nIts axes begin with {listed}.\n"


def _is_own(parameter: Parameter, common: list[Parameter]) -> bool:
    """Return whether a parameter is not that of all the family, or has another default."""
    return all(
        parameter.name != each.name or parameter.field.default != each.field.default for each in common
    )


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _values(parameter: Parameter) -> str:
    """Return the domain of a parameter in words."""
    metadata = parameter.field.metadata
    if parameter.name in AXES:
        kind = parameter.name.partition("_")[0]
        names = registry.names(AXES[parameter.name])
        if AXES[parameter.name] == "observers":
            names = tuple(
                name for name in names if hasattr(registry.module("observers", name), f"update_{kind}")
            )
        return ", ".join(f"`{name}`" for name in names)
    if "options" in metadata:
        return ", ".join(_shown(option) for option in metadata["options"])
    if metadata["type"] is bool:
        return "`true`, `false`"
    words = "integer" if metadata["type"] is int else "number"
    rules = metadata["rules"]
    signs = {"at least": "≥", "above": ">", "at most": "≤", "below": "<"}
    limits = [f"{signs[rule]} {limit:,}" for rule, limit in rules.items() if limit is not None]
    return ", ".join([words, *limits])


def _default(parameter: Parameter) -> str:
    return _shown(parameter.field.default)


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return f"`{'null' if value is None else str(value).lower()}`"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{value}`"
