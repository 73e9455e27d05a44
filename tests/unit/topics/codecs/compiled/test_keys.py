"""Keys as numbers: few of them by a dictionary, many by a kernel, and both say the same."""

from __future__ import annotations

import tracemalloc

import pytest

from topics.codecs.compiled import keys
from topics.codecs.compiled.keys import FEW, KeyTexts, coded
from topics.codecs.limits import Limits
from topics.columns.spans import Spans


@pytest.mark.parametrize("n", [0, 1, 2, FEW, FEW + 1, 300])
@pytest.mark.parametrize("with_nulls", [False, True])
def test_few_keys_get_the_numbers_that_many_would_get(
    n: int, with_nulls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [None if with_nulls and i % 5 == 3 else b"model-%d" % (i * i % 7) for i in range(n)]

    def found() -> tuple[list[bytes | None], list[bytes | None]]:
        distinct, codes = coded(Spans.of(given)[:])  # a slice knows nothing of its values
        return distinct, [distinct[code] for code in codes.tolist()]

    known, keys_of = found()
    assert keys_of == given
    monkeypatch.setattr(keys, "FEW", 0)
    by_kernel, keys_of_kernel = found()
    assert keys_of_kernel == given
    assert [key for key in by_kernel if key is not None] == [key for key in known if key is not None]
    assert len(known) == len(by_kernel) == len(set(given))


def test_names_of_models_that_come_and_go_for_ever_take_bounded_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker meets names of deleted models no more, but it cannot tell them from others."""
    most, keys_a_run, runs = 1_000, 100, 300
    monkeypatch.setattr(keys, "MAX_REMEMBERED", most)
    texts, limits = KeyTexts(), Limits()
    in_use: list[int] = []
    tracemalloc.start()
    try:
        for run in range(runs):
            names = [b"model-%08d" % (keys_a_run * run + number) for number in range(keys_a_run)]
            assert texts(Spans.of(names), limits)[0] == [name.decode() for name in names]
            in_use.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    to_the_bound = most // keys_a_run + 2
    assert max(in_use[to_the_bound:]) < 1.2 * max(in_use[:to_the_bound])
