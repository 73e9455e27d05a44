"""Label requests are written to what the codec writes, byte for byte, whatever is in them."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.test_answers import ODD
from tests.tiers import examples
from topics.codecs import encode_label_requests
from topics.codecs.compiled import encode_requests as module
from topics.codecs.compiled.encode_requests import encode_requests
from topics.codecs.offset_ids import OffsetIds
from topics.columns.dictionary import Dictionary
from topics.columns.records import Features, LabelRequests

NUMBERS = (
    *(np.nan, -0.0, 0.0, 1.0, -1.5, 1e16, 1e15, 123456789.125, 5e-324, 1.7976931348623157e308, np.inf),
    *(1e-5, 1e-7, 0.1 + 0.2, 1 / 3, 2.5e-10, 100000.0, -np.inf, 4.35, 9007199254740993.0),
)


class Asked:
    """Makes requests: most of them usual, some with what hardly ever occurs."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._oddness = rng.choice([0.0, 0.05, 0.5])

    def requests(self, n: int) -> LabelRequests:
        rng = self._rng
        classes = [None, *(self._text() for _ in range(3))]
        predictions = [rng.choice(classes) for _ in range(n)]
        strategies = [rng.choice(["random", "fixed_uncertainty", self._text()]) for _ in range(n)]
        return LabelRequests(
            self._ids(n),
            self._ids(n),
            self._features(n),
            Dictionary.of(predictions) if rng.random() < 0.5 else predictions,
            Dictionary.of(strategies) if rng.random() < 0.5 else strategies,
            np.array([self._number() for _ in range(n)]),
            np.array([rng.choice([-1, 0, 1_700_000_000_000, 2**63 - 1]) for _ in range(n)], dtype=np.int64),
        )

    def _features(self, n: int) -> list[Features]:
        rng = self._rng
        width = rng.choice([0, 1, 3, 10])
        names = None if rng.random() < 0.3 else [f"{self._text()}{at}" for at in range(width)]
        values = np.array([[self._number() for _ in range(width)] for _ in range(n)]).reshape(n, width)
        strings: dict[int, list[str | None]] = {}
        if width and rng.random() < 0.4:
            strings[rng.randrange(width)] = [rng.choice([None, self._text()]) for _ in range(n)]
        one = Features.of(names, values, strings)
        if rng.random() < 0.1 and not strings:  # some rows have others, or none
            rows = np.arange(n - 1, dtype=np.int64)
            return [Features(one.names, rows, values[:-1])]
        return [one]

    def _ids(self, n: int) -> Sequence[str]:
        if self._rng.random() < 0.5:
            return OffsetIds("3-", [self._rng.randrange(10**9) for _ in range(n)])
        return [self._text() for _ in range(n)]

    def _text(self) -> str:
        rng = self._rng
        if rng.random() < self._oddness:
            return "".join(rng.choice(ODD) for _ in range(rng.randint(0, 3)))
        return rng.choice(["a", "yes", "row-17", "class 1", "é"])

    def _number(self) -> float:
        rng = self._rng
        return (
            rng.choice(NUMBERS) if rng.random() < self._oddness else round(rng.random(), rng.randint(1, 17))
        )


@settings(max_examples=examples(200))
@given(st.integers(0, 2**63))
def test_both_writers_write_the_same(seed: int) -> None:
    rng = random.Random(seed)
    requests = Asked(rng).requests(rng.choice([1, 7, 8, 9, 300]))
    written, expected = encode_requests(requests), encode_label_requests(requests)
    assert list(written) == expected
    assert written.lengths.tolist() == [*map(len, expected)]


def test_plain_requests_are_written_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    features = [Features.of(["x", "y"], np.ones((20, 2)), {1: ["red"] * 20})]
    ids, column = [f"{at}" for at in range(20)], np.arange(20)
    requests = LabelRequests(ids, ids, features, ["a"] * 20, ["random"] * 20, column / 7, column)
    expected = encode_label_requests(requests)
    monkeypatch.delattr(module, "encode_label_requests")
    assert list(encode_requests(requests)) == expected
