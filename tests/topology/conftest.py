"""A learner that really fails, registered as any plug-in is: as a file of its family."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core import learners, registry

EXPLOSIVE = '''
"""An H-Tree whose attempt to split fails at a leaf that has seen a part of a record's weight."""

from dataclasses import dataclass
from typing import ClassVar

from core.learners.hoeffding.presets import h_tree


@dataclass(frozen=True, slots=True)
class Plugin(h_tree.Plugin):
    compiled: ClassVar[bool] = False  # every attempt comes to `decide`

    def decide(self, model, tree, node, leaf):
        if leaf.observed % 1.0:
            raise ArithmeticError("this weight is no whole number")
        return h_tree.Plugin.decide(self, model, tree, node, leaf)
'''


@pytest.fixture
def explosive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the name of the learner."""
    (tmp_path / "explosive.py").write_text(EXPLOSIVE)
    monkeypatch.setattr(learners, "__path__", [*learners.__path__, str(tmp_path)])
    registry.module_paths.cache_clear()
    yield "explosive"
    registry.module_paths.cache_clear()
