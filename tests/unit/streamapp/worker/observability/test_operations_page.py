"""docs/operations.md: the lines it explains are said somewhere, as they stand there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.observability.model_figures import (
    ADVICES,
    CLASS_FIGURES,
    CLASSES_MAX,
    MODELS_MAX,
    ModelFigures,
)

ROOT = Path(__file__).parents[5]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
TABLE = PAGE.split("| line | what it means | what to do |\n|---|---|---|\n")[1].split("\n\n")[0]
LINES = [line for row in TABLE.splitlines() for line in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


def texts() -> list[str]:
    """Every text in our code, with a gap where a value is put in."""
    found = []
    for package in ("streamapp", "topics"):
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    parts = [str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values]
                    found.append("".join(parts))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(re.sub(r"%(\.\d)?[sdrf]", "…", node.value))
    return found


TEXTS = "\n".join(texts())


@pytest.mark.parametrize("line", LINES)
def test_every_line_is_said(line: str) -> None:
    pieces = [piece.strip(" ;:,") for piece in re.split(r"…|=|\b[A-Z]+\b", line)]
    assert any(len(piece) > 5 for piece in pieces), line
    for piece in pieces:
        assert piece in TEXTS, piece


def test_every_line_has_a_remedy() -> None:
    for row in TABLE.splitlines():
        assert len(row.strip("| ").split(" | ")) == 3, row


def test_every_metric_is_counted() -> None:
    named = set(re.findall(r"`((?:grove|kafka)_[a-z_]+)", PAGE))
    assert {"grove_tree_splits_total", "grove_label_budget_ratio", "kafka_consumergroup_lag"} <= named
    counted = {family.name for family in Metrics().registry.collect()}
    unknown = {name for name in named if name.removesuffix("_total") not in counted and name not in TEXTS}
    assert unknown == set()


FIGURES = PAGE.split("### Figures of models\n")[1].split("\n### ")[0].split("\n## ")[0]


def test_every_figure_of_a_model_is_in_the_table() -> None:
    """The ends of an interval may be left out: the table names them together."""
    named = set(re.findall(r"`(grove_[a-z0-9_]+)`", FIGURES))
    shown = {family.name for family in ModelFigures().collect()}
    missing = {name for name in shown if name not in named and re.sub("_(low|high)$", "", name) not in named}
    assert missing == set()


def test_the_most_samples_of_figures_are_as_many_as_the_page_has() -> None:
    names = {family.name for family in ModelFigures().collect()}
    of_classes = {name for name in names if name.startswith("grove_class_")}
    assert len(of_classes) == 1 + 3 * len(CLASS_FIGURES)
    of_model = len(names - of_classes) + len(ADVICES) - 1 + CLASSES_MAX * len(of_classes)
    assert f"at most {MODELS_MAX * of_model:,} samples" in FIGURES
