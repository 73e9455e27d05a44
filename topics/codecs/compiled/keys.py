"""Keys: the distinct keys of a run and the key of each record, found by a kernel; texts are made once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import numpy as np

from topics.codecs.flaws import Flaw
from topics.codecs.limits import Limits
from topics.codecs.screening import ModelKeys, key_text
from topics.columns.headers import Headers
from topics.columns.spans import CodedKeys, HeaderSpans, Spans

MAX_REMEMBERED: Final = 100_000
"""Keys whose texts are cached."""

FEW: Final = 64
"""Up to this number of keys a dictionary is faster than a kernel call."""


def coded(keys: Sequence[bytes | None]) -> CodedKeys:
    """Return the distinct keys in order of first occurrence, and the key of each record."""
    spans = Spans.of(keys)
    if spans.coded is None:
        spans.coded = _coded(spans)
    return spans.coded


def code_headers(headers: Sequence[Headers]) -> None:
    """Let the kernel find equal headers in a run."""
    if isinstance(headers, HeaderSpans) and not headers.are_none:
        coded(headers.written)


def _coded(spans: Spans) -> CodedKeys:
    from topics.codecs.json.compiled.rows import (  # compiled kernels: imported only when needed
        LENGTH_BITS,
        text_codes,
    )

    n, lengths = len(spans), spans.lengths
    if n <= FEW or int(lengths.max()) >= 1 << LENGTH_BITS:
        return spans.coded_one_by_one()
    is_null = lengths < 0
    places = np.where(is_null, -1, (spans.starts << LENGTH_BITS) | lengths)
    codes = np.empty(n, dtype=np.int32)
    first = np.empty(n, dtype=np.int64)
    table = np.full(1 << (2 * n).bit_length(), -1, dtype=np.int64)
    n_distinct = text_codes(spans.bytes, places, table, codes, first)
    starts = first[:n_distinct] >> LENGTH_BITS
    ends = starts + (first[:n_distinct] & ((1 << LENGTH_BITS) - 1))
    buffer = spans.buffer
    keys: list[bytes | None] = [buffer[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    if is_null.any():
        codes[is_null] = n_distinct
        keys.append(None)
    return CodedKeys(keys, codes)


class KeyTexts:
    """A cache of the texts of keys, by their bytes, for all runs of a topic."""

    def __init__(self) -> None:
        self._texts: dict[bytes | None, str] = {}
        self._flaws: dict[bytes | None, Flaw] = {}
        self._limit = -1  # bytes of a key

    def __call__(self, keys: Sequence[bytes | None], limits: Limits) -> ModelKeys:
        """Return the result of `topics.codecs.screening.model_keys`."""
        limit = limits.text_max_bytes
        if limit != self._limit or len(self._texts) + len(self._flaws) > MAX_REMEMBERED:
            self._texts, self._flaws, self._limit = {}, {}, limit
        coded_keys = coded(keys)
        names_or_none = list(map(self._texts.get, coded_keys.distinct))
        if None not in names_or_none:
            return cast("list[str]", names_or_none), coded_keys.codes, {}
        return self._read(coded_keys, limit)

    def _read(self, keys: CodedKeys, limit: int) -> ModelKeys:
        """Read keys of which some are not known as good ones yet; `limit`: of their bytes."""
        names: list[str] = []
        flaws: dict[bytes | None, Flaw] = {}
        number = np.full(len(keys.distinct), -1, dtype=np.int32)
        for code, key in enumerate(keys.distinct):
            text = self._texts.get(key) or self._flaws.get(key) or key_text(key, limit)
            if isinstance(text, str):
                number[code] = len(names)
                names.append(text)
                self._texts[key] = text
            else:
                flaws[key] = self._flaws[key] = text
        return names, number[keys.codes] if flaws else keys.codes, flaws
