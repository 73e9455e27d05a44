"""Name index: beside a dictionary, whatever is appended, struck, undone and forgotten."""

from __future__ import annotations

import random

import numpy as np
import pytest

from streamapp.worker.task.pending import name_index
from streamapp.worker.task.pending.name_columns import Name, Names
from streamapp.worker.task.pending.name_index import NameIndex
from topics.columns.spans import Spans, Texts

IDS = [
    "",
    "a",
    "\0",
    "a\0",
    "é",
    "\ud800",
    "日本",
    *(f"i{n}" for n in range(60)),
    *("x" * n for n in range(1, 26)),
]
KEYS = ["m", "", "schlüssel", *(f"key {n}" for n in range(9))]
POOL = [(key, name) for key in KEYS for name in IDS]


class Twin:
    """The same in a list and a dictionary."""

    def __init__(self) -> None:
        self.names: list[Name] = []
        self.base = 0
        self.first = 0  # nothing leads to serials before
        self.leads: dict[Name, int] = {}

    def append(self, names: list[Name]) -> list[int]:
        older = [self.leads.get(name, -1) for name in names]
        for name in names:
            self.leads[name] = self.base + len(self.names)
            self.names.append(name)
        return older

    def strike(self, first: int, stop: int) -> list[bool]:
        struck = []
        for serial in range(first, stop):
            name = self.names[serial - self.base]
            struck.append(self.leads.get(name) == serial)
            if struck[-1]:
                del self.leads[name]
        return struck


def columns(names: list[Name], draw: random.Random) -> Names:
    """Return names as they come: ids as strings or in a buffer, with keys that nobody has."""
    keys = list(dict.fromkeys([*(key for key, _ in names), *draw.sample(KEYS, 2)]))
    draw.shuffle(keys)
    key = np.array([keys.index(each) for each, _ in names], dtype=np.int32)
    ids = [name for _, name in names]
    if draw.random() < 0.5:
        return Names(keys, key, ids)
    texts = [b"%d" % draw.randrange(99), *(each.encode("utf-8", "surrogatepass") for each in ids), b"end"]
    return Names(keys, key, Texts(Spans.of(texts)[1:-1]))


def assert_same(index: NameIndex, twin: Twin, draw: random.Random) -> None:
    assert len(index) == len(twin.leads)
    assert dict(index) == twin.leads
    asked = draw.choices(POOL, k=50)
    assert index.serials(columns(asked, draw)).tolist() == [twin.leads.get(name, -1) for name in asked]
    assert list(index.stored(twin.base, twin.base + len(twin.names))) == twin.names


@pytest.mark.parametrize("seed", range(30))
def test_names_lead_where_those_of_a_dictionary_do(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_index, "SPARE_KEYS", 3)
    draw = random.Random(seed)
    index, twin = NameIndex(), Twin()
    for _ in range(25):
        image, were = index.stored(twin.base, twin.base + len(twin.names)), list(twin.names)
        undone = draw.random() < 0.4
        before = dict(twin.leads), list(twin.names), twin.first
        struck: list[int] = []
        n = 0
        older: list[int] = []
        for _ in range(draw.randrange(4)):
            end = twin.base + len(twin.names)
            if draw.random() < 0.6:
                names = draw.sample(POOL, draw.choice([0, 1, 5, 60]))
                was = index.append(columns(names, draw))
                assert was.tolist() == twin.append(names)
                n, older = n + len(names), [*older, *was.tolist()]
            elif end > twin.first:
                stop = draw.randrange(twin.first, end) + 1
                taken = index.strike(twin.first, stop)
                assert taken.tolist() == twin.strike(twin.first, stop)
                struck += [twin.first + at for at in np.flatnonzero(taken).tolist()]
                twin.first = stop
        assert_same(index, twin, draw)
        if undone:
            twin.leads, twin.names, twin.first = before
            old = [each for each in reversed(struck) if each < twin.base + len(twin.names)]
            index.undo(np.array(older, dtype=np.int64), np.array(old, dtype=np.int64))
            assert_same(index, twin, draw)
        elif draw.random() < 0.3:
            index.forget(twin.first)
            twin.names = twin.names[twin.first - twin.base :]
            twin.base = twin.first
            assert_same(index, twin, draw)
        assert list(image) == were, "an image stays what it was"


def test_names_that_are_equal_have_equal_codes() -> None:
    names = [("a", "x"), ("b", "x"), ("a", "x" * 9), ("a", "x"), ("a", "x" * 9), ("b", "")]
    assert Names.of(names).codes.tolist() == [0, 1, 2, 0, 2, 3]
    assert Names.of([]).codes.tolist() == []


def test_names_are_parts_and_joined() -> None:
    names = Names.of(POOL)
    assert names[3:9] == POOL[3:9] == list(names.part(3, 9))
    assert list(names.where(np.array([5, 0, 5]))) == [POOL[5], POOL[0], POOL[5]]
    joined = Names.joined([names[700:], names[:2], Names.of([])])
    assert joined == POOL[700:] + POOL[:2]
    assert joined.hashes.tolist() == [*names.hashes[700:].tolist(), *names.hashes[:2].tolist()]
    assert list(Names.joined([])) == []


def test_memory_of_names_that_are_gone_is_given_back() -> None:
    index = NameIndex()
    for round_ in range(40):
        index.append(Names.of([(f"key {round_}-{n}", f"id {round_}-{n}") for n in range(300)]))
        if round_ >= 3:
            index.strike(300 * (round_ - 3), 300 * (round_ - 2))
            index.forget(300 * (round_ - 2))
    assert len(index) == 900
    assert len(index._names) < 5_000
    assert len(index._ids) < 50_000
    assert len(index._table) <= 16 * 900
    assert len(index._keys) <= name_index.SPARE_KEYS + 1_200
