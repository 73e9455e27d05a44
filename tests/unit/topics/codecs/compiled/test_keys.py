"""Keys as numbers: few of them by a dictionary, many by a kernel, and both say the same."""

from __future__ import annotations

import pytest

from topics.codecs.compiled import keys
from topics.codecs.compiled.keys import FEW, coded
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
