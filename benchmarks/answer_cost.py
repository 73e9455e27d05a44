"""Cost of an answer by variant of a spec: shared by the benchmarks of parts of a model that answers have.

Models that differ in one part of their spec answer the same records in turn. Times are CPU time. Ratios of
one turn are compared, so that a busy machine disturbs all variants alike.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from benchmarks.name_lists import add_name_lists
from benchmarks.task import measure
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec
from core.streams.base import open_generator

RUN: Final = 5_000
"""Records of a run."""
LEARNED: Final = 20_000
WARM: Final = 5
"""The first turns, one in this number, warm up and are not counted."""
STAGES: Final = ("decode", "process", "encode")
Variants = Mapping[str, Mapping[str, Any]]
"""Name → the members that a variant adds to the common spec."""
Times = dict[str, list[float]]
"""Name of a variant → the time of each turn."""


def spec_of(variant: Mapping[str, Any]) -> Spec:
    """Return the spec of a tree that requests no labels."""
    return Spec.parse({"learner": "h-tree", "query": "never", "evaluation": {"every": 0}} | dict(variant))


def table_of(stream: str, variant: Mapping[str, Any]) -> ModelTable:
    """Return a table with a model that has learned."""
    generator = open_generator(stream, seed=1)
    table = ModelTable()
    table.add(Model.create(spec_of(variant), generator.schema))
    for x, y in generator.batches(LEARNED, RUN):
        table.answer(np.zeros(len(y), dtype=np.int64), x, y, np.ones(len(y)))
    return table


def nanoseconds(table: ModelTable, x: np.ndarray) -> float:
    """Return the CPU time of an answer to one of the records x: float64[RUN, d]."""
    models, label, weights = np.zeros(RUN, np.int64), np.full(RUN, -1, np.int32), np.ones(RUN)
    began = time.process_time_ns()
    table.answer(models, x, label, weights)
    return (time.process_time_ns() - began) / RUN


def in_kernel(stream: str, variants: Variants, rounds: int) -> tuple[Times, dict[str, int]]:
    """Return the nanoseconds of an answer in the kernel by variant and turn, and the bytes of the models."""
    tables = {name: table_of(stream, variant) for name, variant in variants.items()}
    times: Times = {name: [] for name in variants}
    for turn, (x, _) in enumerate(open_generator(stream, seed=1).batches(RUN * rounds, RUN)):
        for name in in_turn(variants, turn):
            times[name].append(nanoseconds(tables[name], x))
    kept = {name: values[rounds // WARM :] for name, values in times.items()}
    return kept, {name: table.model(0).nbytes for name, table in tables.items()}


def in_task(variants: Variants, runs: int, turns: int) -> Times:
    """Return the microseconds of an answer in a task by variant and turn: decoded, processed and encoded."""
    options = argparse.Namespace(attributes=10, runs=runs, leaf="nba", handler="stop-partition")
    times: Times = {name: [] for name in variants}
    for turn in range(turns):
        for name in in_turn(variants, turn):
            stages = measure(options, 1, labelled=False, query="never", **variants[name])
            times[name].append(sum(stages["us_per_record"][stage] for stage in STAGES))
    return times


def in_turn(variants: Variants, turn: int) -> list[str]:
    """Return the names of the variants in the order of a turn: each other turn begins with the last."""
    return list(variants) if turn % 2 else list(variants)[::-1]


def arguments(program: str, title: str, streams: tuple[str, ...], rounds: int) -> argparse.ArgumentParser:
    """Return the command line of a benchmark; `rounds`: the default number of runs."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{program}", description=title)
    add_name_lists(parser, {"streams": streams})
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--task", action="store_true", help="measure a whole answer in a task instead")
    parser.add_argument("--turns", type=int, default=5)
    return parser
