import gc
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.schema import shared
from core.schema.names import Names, text_bytes


@given(st.lists(st.text(max_size=8), unique=True, max_size=400), st.integers(0, 400))
def test_codes_are_the_places_of_the_names(texts, cut):
    names = Names.of(texts[:cut]).with_more(texts[cut:])
    assert names.texts == tuple(texts)
    assert [names.code(text) for text in texts] == list(range(len(texts)))
    assert names.code("a name that is longer than all others") == -1
    assert names is Names.of(texts)


@pytest.mark.parametrize("n", [254, 255, 256, 257, 65_535, 65_536])
def test_there_may_be_as_many_as_one_likes(n):
    texts = [str(i) for i in range(n)]
    names = Names.of(texts[:-1]).with_more(texts[-1:])
    assert [names.code(text) for text in (texts[0], texts[-2], texts[-1], "x")] == [0, n - 2, n - 1, -1]


def test_names_that_grow_leave_those_they_grew_from_as_they_were():
    before = Names.of(["a", "b", "c"])
    one, other = before.with_more(["d"]), before.with_more(["e"])
    assert [before.code(text) for text in "abcde"] == [0, 1, 2, -1, -1]
    assert [one.code(text) for text in "abcde"] == [0, 1, 2, 3, -1]
    assert [other.code(text) for text in "abcde"] == [0, 1, 2, -1, 3]


@pytest.mark.parametrize("texts", [["a", "a"], ["b", "a", "b"]])
def test_equal_names_are_refused(texts):
    with pytest.raises(ValueError, match="must not occur twice"):
        Names.of(texts)
    with pytest.raises(ValueError, match="'a' must not occur twice"):
        Names.of(["a"]).with_more(["a"])


def test_texts_that_were_met_lately_are_shared():
    texts = ["".join(["na", "me", str(i)]) for i in range(50)]
    others = ["".join(["na", "me", str(i)]) for i in range(50)]
    random.Random(1).shuffle(others)
    one, other = Names.of(texts), Names.of(others)
    assert {id(text) for text in one.texts} == {id(text) for text in other.texts}


def test_what_nobody_has_any_more_is_gone_and_counted_as_gone():
    gc.collect()
    before = shared.TALLY.bytes
    names = Names.of([f"gone-{i}" for i in range(1000)])
    known = len(Names._known)
    assert 12_000 < shared.TALLY.bytes - before < 20_000
    assert names.content_bytes == sum(len(text) + 16 for text in names.texts)
    del names
    assert shared.TALLY.bytes == before
    assert len(Names._known) == known - 1


def test_bytes_of_a_text():
    assert [text_bytes(text) for text in ("", "abc", "ä", "日本")] == [0, 3, 4, 8]
