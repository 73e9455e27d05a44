"""Answers are written to what the codecs write, byte for byte, whatever is in them."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from topics.codecs import encode_predictions
from topics.codecs.compiled import encode
from topics.codecs.compiled.encode import encode_answers
from topics.codecs.offset_ids import OffsetIds
from topics.columns.records import Acquired, Format, Predictions
from topics.errors import CodecError

ODD = (
    *(
        '"',
        "\\",
        '\\"',
        "\n",
        "\r\n",
        "\t",
        "\b\f",
        "\x00",
        "\x1f",
        "\x7f",
        "\x80",
        "é",
        "日本",
        "😀",
        "\ufffe",
    ),
    *("%s", "%%", "%", "{", "}", '","', "null", "", " ", "/", "\u2028", "a" * 300, "ß" * 300, '\\u0041"'),
)
PROBABILITIES = (
    *(np.nan, -0.0, 0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, 5e-324, 1e30, 1e39, -1e308, 1e-5, 4.9999e-5, 5e-5),
    *(0.00015, 0.00025, 0.12345, 0.99995, 0.99994999, 0.9999, 0.5, 1 / 3, 2 / 3, 1 + 1e-12),
)
VERSIONS = (0, 1, 9, 10, 99, 100, 10**18, 10**18 - 1, 2**53 + 1, 2**62, 2**63 - 1)


class Answered:
    """Makes answers: most of them usual, some with what hardly ever occurs."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._oddness = rng.choice([0.0, 0.0, 0.05, 0.5])

    def predictions(self, n: int) -> Predictions:
        rng = self._rng
        count = rng.choice([0, 1, 2, 2, 3, 7, 40])
        wider = count + rng.choice([0, 0, 3])
        paths: list[str | None] | None = [self._path() for _ in range(n)] if rng.random() < 0.5 else None
        bought: list[Acquired | None] | None = (
            [Acquired(["a", 'b"'], 1.5, "budget")] * n if rng.random() < 0.05 else None
        )
        return Predictions(
            tuple(dict.fromkeys(f"{self._text()}{i}" for i in range(count))),
            self._ids(n),
            np.array([rng.randrange(-1, count) for _ in range(n)], dtype=np.int32),
            np.array([[self._probability() for _ in range(wider)] for _ in range(n)]).reshape(n, wider),
            np.array([self._version() for _ in range(n)], dtype=np.int64),
            paths,
            bought,
        )

    def _ids(self, n: int) -> Sequence[str]:
        if self._rng.random() < 0.3:
            head, offsets = f"{self._rng.choice([0, 7, 12345])}-", [self._version() for _ in range(n)]
            return OffsetIds(head, offsets if self._rng.random() < 0.5 else np.array(offsets))
        return [f"3-{at}" if self._rng.random() < 0.5 else self._text() for at in range(n)]

    def _is_odd(self) -> bool:
        return self._rng.random() < self._oddness

    def _text(self) -> str:
        if self._is_odd():
            return "".join(self._rng.choice(ODD) for _ in range(self._rng.randint(0, 3)))
        return self._rng.choice(["a", "yes", "no", "row-17", "class 1", "é"])

    def _path(self) -> str | None:
        path = self._rng.choice([None, "all", "x <= 1.5 and y > -2", 'c = "red"', ""])
        return self._text() if self._is_odd() else path

    def _probability(self) -> float:
        return self._rng.choice(PROBABILITIES) if self._is_odd() else self._rng.random()

    def _version(self) -> int:
        rng = self._rng
        return rng.choice(VERSIONS) if self._is_odd() else rng.randrange(10 ** rng.randint(1, 7))


def compare(predictions: Predictions, form: Format) -> None:
    written = encode_answers(predictions, form)
    expected = encode_predictions(predictions, form)
    assert list(written) == expected
    assert written.lengths.tolist() == [*map(len, expected)]


@settings(max_examples=examples(200))
@given(st.integers(0, 2**63), st.sampled_from(["json", "packed"]))
def test_both_writers_write_the_same(seed: int, form: Format) -> None:
    rng = random.Random(seed)
    compare(Answered(rng).predictions(rng.choice([1, 7, 8, 9, 40])), form)


@settings(max_examples=examples(30))
@given(st.integers(0, 2**63))
def test_a_block_is_one_value(seed: int) -> None:
    predictions = Answered(random.Random(seed)).predictions(20)
    compare(Predictions(*(getattr(predictions, name) for name in Predictions.__slots__[:5])), "arrow")


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_ten_million_answers_are_the_same() -> None:
    seen, seed = 0, 0
    while seen < 10_000_000:
        answered = Answered(random.Random(seed))
        predictions = answered.predictions(2000)
        for form in ("json", "packed"):
            compare(predictions, form)
            seen += len(predictions)
        seed += 1


def test_each_step_of_a_probability() -> None:
    """And the halves between them, from both sides."""
    steps = np.arange(20_001) / 20_000
    near = np.concatenate([steps, np.nextafter(steps, 2), np.nextafter(steps, -2)])
    n = len(near)
    zeros = np.zeros(n, dtype=np.int32)
    predictions = Predictions(("x",), ["i"] * n, zeros, near.reshape(-1, 1), zeros.astype(np.int64))
    compare(predictions, "json")
    compare(predictions, "packed")


def usual(n: int, ids: Sequence[str] | None = None) -> Predictions:
    columns = (np.zeros(n, dtype=np.int32), np.full((n, 2), 0.5), np.arange(n))
    return Predictions(("x", "y"), ids or [f"row {i}" for i in range(n)], *columns)


@pytest.mark.parametrize("form", ["json", "packed"])
def test_usual_answers_take_the_short_way(form: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the comparison compares the codec with itself."""
    by_codec: list[int] = []
    monkeypatch.setattr(
        encode,
        "encode_predictions",
        lambda predictions, _: by_codec.append(len(predictions)) or [b""] * len(predictions),
    )
    for predictions in (usual(8), usual(1), usual(8, ["é", "日本", *"abcdef"])):
        encode_answers(predictions, form)
    assert by_codec == []


def test_an_id_too_long_for_packed_is_refused_as_the_codec_refuses_it() -> None:
    ids = ["x" * 65_536, *"abcdefg"]
    compare(usual(8, ["x" * 65_535, *"abcdefg"]), "packed")
    compare(usual(8, ids), "json")
    with pytest.raises(CodecError, match="must have at most 65535 to be packed"):
        encode_answers(usual(8, ids), "packed")
