"""The registry: kernels of plug-ins are called by kind."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from core import registry
from core.errors import GroveError
from core.kernels.jit import kernel


def test_a_kernel_with_other_parameters_is_refused_by_name_and_rule() -> None:
    @kernel
    def update(params, at, floats, state, error):
        return 0

    member = ModuleType("made.detector")
    member.update = update  # type: ignore[attr-defined]
    with pytest.raises(GroveError) as refused:
        registry.dispatch_to([(0, member)], "made.update", "p, state, error")
    assert str(refused.value) == (
        "made.detector.update(params, at, floats, state, error) must have the parameters (p, state, error); "
        "the base of its family describes them"
    )


PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar
from {package}.base import {base}
from core.kernels.jit import kernel

@dataclass(frozen=True, slots=True)
class Plugin({base}):
    kind: ClassVar[str] = "numeric"

{kernels}
"""


def forget(package: ModuleType) -> None:
    """Remove the plug-in named ``lonely`` from a package, if it was imported."""
    sys.modules.pop(f"{package.__name__}.lonely", None)
    vars(package).pop("lonely", None)


@pytest.fixture
def add_plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """A function that adds a plug-in named ``lonely`` to a family for the time of a test."""
    packages: list[ModuleType] = []

    def add(family: str, base: str, kernels: str = "") -> None:
        package = importlib.import_module(registry.PACKAGES[family])
        forget(package)
        source = PLUGIN.format(package=package.__name__, base=base, kernels=kernels)
        folder = tmp_path / str(len(packages))
        folder.mkdir()
        (folder / "lonely.py").write_text(source)
        monkeypatch.setattr(package, "__path__", [str(folder), *package.__path__])
        packages.append(package)
        registry.module_paths.cache_clear()

    yield add
    monkeypatch.undo()
    registry.module_paths.cache_clear()
    for package in packages:
        forget(package)


@pytest.mark.parametrize(
    ("family", "base", "call", "refusal"),
    [
        (
            "drift",
            "Detector",
            ("update", "p, state, error"),
            "core.drift.lonely must have the kernel update(p, state, error); add it, as core.drift.base "
            "describes it",
        ),
        (
            "budgets",
            "Budget",
            ("spend", "p, state, asked, reserved"),
            "core.active.budgets.lonely must have the kernel spend(p, state, asked, reserved); add it, as "
            "core.active.budgets.base describes it",
        ),
    ],
)
def test_a_plugin_without_a_kernel_is_refused_by_name_and_rule(
    add_plugin: Callable[..., None], family: str, base: str, call: tuple[str, str], refusal: str
) -> None:
    add_plugin(family, base)
    with pytest.raises(GroveError) as refused:
        registry.dispatch.__wrapped__(family, *call)
    assert str(refused.value) == refusal


def test_a_plugin_needs_the_kernels_of_its_kind_only(add_plugin: Callable[..., None]) -> None:
    add_plugin("observers", "Observer")
    dispatch = registry.dispatch.__wrapped__
    with pytest.raises(GroveError, match=r"lonely must have the kernel candidates_numeric\(plan, p\)"):
        dispatch("observers", "candidates_numeric", "plan, p", needed_by=is_numeric)
    add_plugin("observers", "Observer", kernels="@kernel\ndef candidates_numeric(plan, p):\n    return 7\n")
    assert callable(dispatch("observers", "candidates_numeric", "plan, p", needed_by=is_numeric))
    assert callable(dispatch("observers", "propose_roughly", ROUGHLY, needed_by=registry.no_plugin))


ROUGHLY = "plan, p, statistics, k, candidates"


def is_numeric(observer: ModuleType) -> bool:
    """Return whether the module of an observer observes numeric attributes."""
    return bool(observer.Plugin.kind == "numeric")
