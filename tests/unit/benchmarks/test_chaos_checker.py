"""What judges the application under faults reads logs by code of its own: else both would be silent alike."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import benchmarks.chaos

HERE = Path(benchmarks.chaos.__file__).parent
READERS = ("checker", "purchases", "wire", "raw_client", "source_tape", "tape", "coordinator", "evidence")
ALLOWED = {"aiokafka.record.util"}
"""Of the clients that the application has: a checksum."""
TASK = {
    "streamapp.worker.task.task_config",
    "streamapp.worker.task.models.eviction.model_memory",
    "streamapp.worker.task.sources",
    "streamapp.worker.task.task",
    "topics.definitions",
    "topics.columns.records",
}
"""What the undisturbed worker is made of: the task, and the form in which it takes records."""


def imported(name: str) -> set[str]:
    """Return the modules that a module of the chaos program imports by itself."""
    tree = ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8"))
    found = {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
    return found | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def of_the_application(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] in ("core", "topics", "streamapp", "aiokafka")}


@pytest.mark.parametrize("name", READERS)
def test_who_reads_a_log_has_nothing_of_the_application(name: str) -> None:
    assert of_the_application(imported(name)) <= ALLOWED


def test_the_reference_has_the_task_alone() -> None:
    assert of_the_application(imported("reference")) == TASK
