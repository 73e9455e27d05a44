"""The benchmark of feature acquisition measures what it says, on little."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.acquisition import FIRST, MEMORY, RUN, memory, task_cost
from core.kernels import jit

pytestmark = pytest.mark.skipif(jit.DISABLED, reason="a matter of speed")


@pytest.mark.parametrize("kind", MEMORY[::3], ids=lambda kind: kind[0])
def test_it_opens_as_many_as_there_may_be_and_answers_the_oldest_for_one_more(
    kind: tuple[str, Any, Any, int],
) -> None:
    found = memory(*kind[:4], FIRST + RUN)
    assert (found["open"], found["answered_for_room"]) == (FIRST + RUN, 1)
    assert 0 < found["counted_bytes"] < found["bound_bytes"]


def test_every_kind_of_record_is_answered() -> None:
    costs = task_cost(2)
    assert len(costs["us_per_record"]) == 4 and all(cost > 0 for cost in costs["us_per_record"].values())
