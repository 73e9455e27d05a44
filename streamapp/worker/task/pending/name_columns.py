"""Names: model keys and instance ids of many instances, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np

from core.schema.names import text_bytes
from streamapp.worker.task.pending.name_table import EMPTY, code_names, hash_names
from topics.codecs.compiled.text_columns import text_spans
from topics.columns.records import Ints32, Ints64
from topics.columns.spans import Column, Spans, Texts

Name = tuple[str, str]  # model key, instance id

_ERRORS = "surrogatepass"


class Names(Column[Name]):
    """n names; each becomes a pair of strings when it is read."""

    def __init__(self, keys: Sequence[str], key: Ints32, ids: Sequence[str]) -> None:
        """keys: without repetition; key: int32[n] into them; ids: n."""
        self.keys = keys
        self.key = key
        self.ids = ids

    @staticmethod
    def of(names: Sequence[Name]) -> Names:
        """Return names as columns."""
        if isinstance(names, Names):
            return names
        code: dict[str, int] = {}
        key = [code.setdefault(key, len(code)) for key, _ in names]
        return Names([*code], np.array(key, dtype=np.int32), [name for _, name in names])

    def __len__(self) -> int:
        return len(self.key)

    def __iter__(self) -> Iterator[Name]:
        return zip(map(self.keys.__getitem__, self.key.tolist()), self.ids, strict=True)

    @overload
    def __getitem__(self, at: int) -> Name: ...
    @overload
    def __getitem__(self, at: slice) -> Names: ...
    def __getitem__(self, at: int | slice) -> Name | Names:
        if not isinstance(at, slice):
            return self.keys[self.key[at]], self.ids[at]
        part = Names(self.keys, self.key[at], Texts(self.spans[at]))
        part._read = (self._read[0][at], self._read[1])
        return part

    def where(self, rows: Ints64) -> Names:
        """Return some of the names (int64[m])."""
        chosen = Names(self.keys, self.key[rows], Texts(self.spans.where(rows)))
        chosen._read = (self._read[0][rows], self._read[1])
        return chosen

    def part(self, start: int, stop: int) -> Names:
        """Return the names from `start` to before `stop`."""
        return self[start:stop]

    @property
    def lengths(self) -> Ints64:
        """int64[n]: bytes of each id."""
        return self.spans.lengths

    @staticmethod
    def joined(parts: Sequence[Names]) -> Names:
        """Return the names of all parts, one part after another."""
        code: dict[str, int] = {}
        key = [np.zeros(0, dtype=np.int32)]
        for part in parts:
            codes = [code.setdefault(key_name, len(code)) for key_name in part.keys]
            key.append(np.array(codes, dtype=np.int32)[part.key])
        spans = Spans.joined([part.spans for part in parts]) if parts else Spans.of([])
        return Names([*code], np.concatenate(key), Texts(spans))

    @cached_property
    def spans(self) -> Spans:
        """The ids in UTF-8, over one buffer."""
        try:
            utf8 = text_spans(self.ids)
        except UnicodeEncodeError:  # half of a pair of surrogates
            utf8 = Spans.of([id_.encode("utf-8", _ERRORS) for id_ in self.ids])
        starts, lengths = map(np.ascontiguousarray, (utf8.starts, utf8.lengths))
        return Spans(utf8.buffer, starts, lengths)

    @property
    def hashes(self) -> Ints64:
        """int64[n], not negative; different in each process, unless PYTHONHASHSEED is set."""
        return self._read[0]

    @cached_property
    def _read(self) -> tuple[Ints64, bool]:
        """Hashes, and whether all ids are ASCII (for a part: whether all ids of the whole are)."""
        hashes = np.empty(len(self), dtype=np.int64)
        seeds = np.fromiter(map(hash, self.keys), dtype=np.int64, count=len(self.keys))
        spans = self.spans
        others = hash_names(spans.bytes, spans.starts, spans.lengths, self._key, seeds, hashes)
        return hashes, not others

    @cached_property
    def codes(self) -> Ints64:
        """int64[n], equal for equal names."""
        n, spans = len(self), self.spans
        codes = np.empty(n, dtype=np.int64)
        table = np.full(1 << (2 * n).bit_length(), EMPTY, dtype=np.int64)
        code_names(spans.bytes, spans.starts, spans.lengths, self.hashes, self._key, table, codes)
        return codes

    def bytes_beyond(self, free: int) -> Ints64:
        """Return int64[n]: the bytes that key and id together take above `free`."""
        keys = np.fromiter(map(text_bytes, self.keys), dtype=np.int64, count=len(self.keys))
        if self._read[1]:
            ids = self.spans.lengths
        else:
            ids = np.fromiter(map(text_bytes, self.ids), dtype=np.int64, count=len(self))
        beyond: Ints64 = np.maximum(keys[self.key] + ids - free, 0)
        return beyond

    @property
    def _key(self) -> Ints32:
        return np.ascontiguousarray(self.key, dtype=np.int32)
