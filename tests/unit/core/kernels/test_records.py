"""Records: the same fields in compiled code and in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.kernels.jit import kernel, register, words_at
from core.kernels.records import Record, offset, word, words_after


class Shelf(Record):
    """Two fields and the words after them."""

    books: int = word("books", low=0, high=10)
    weight: float = word("their weight")
    weights: Any = words_after(float, "weight of each book")


class Room(Record):
    """A record with a method and a property that lead to other words."""

    shelves: int = word("shelves")
    stride: int = word("words of a shelf")

    def shelf(self, number: int) -> Shelf:
        """Return a shelf by its number."""
        return Shelf(self.ints, self.floats, self.start + ROOM_WORDS + number * self.stride)

    @property
    def last(self) -> Shelf:
        """The last shelf."""
        return self.shelf(self.shelves - 1)


ROOM_WORDS = Room.SIZE


@kernel("float64(int64, int64, float64)")
def add_book(address: int, start: int, weight: float) -> float:
    """Put a book on each shelf; return the weight of the last shelf."""
    ints, floats = words_at(address)
    room = Room(ints, floats, start)
    for number in range(room.shelves):
        shelf = room.shelf(number)
        shelf.weights[shelf.books] = weight
        shelf.books += 1
        shelf.weight += weight
    return room.last.weight


@kernel
def books_of(room: Room) -> int:
    """Return the books on the first shelf."""
    return room.shelf(0).books


@pytest.fixture
def words() -> Any:
    """int64[32]: a room of three shelves at word 2."""
    made = np.zeros(32, dtype=np.int64)
    made[2:4] = 3, 5
    register(made)
    return made


def test_a_kernel_and_python_see_the_same_fields(words: Any) -> None:
    assert add_book(words.ctypes.data, 2, 0.5) == 0.5
    assert add_book(words.ctypes.data, 2, 1.25) == 1.75
    room = Room(words, words.view(np.float64), 2)
    assert room.last.books == 2
    assert room.last.weight == 1.75
    assert room.shelf(1).weights[:2].tolist() == [0.5, 1.25]
    assert words[4:9].tolist() == [2, *np.array([1.75, 0.5, 1.25, 0.0]).view(np.int64).tolist()]


def test_a_kernel_takes_a_record_of_python(words: Any) -> None:
    room = Room(words, words.view(np.float64), 2)
    room.shelf(0).books = 7
    assert books_of(room) == 7


def test_offsets_follow_the_order_of_the_fields() -> None:
    assert Shelf.SIZE == 2
    assert [offset(Shelf, name) for name in Shelf.FIELDS] == [0, 1]
    assert Shelf.FIELDS["books"].meaning == "books"
    assert (Shelf.FIELDS["books"].low, Shelf.FIELDS["books"].high) == (0, 10)


def test_two_records_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="name='Shelf' must name one type"):
        type("Shelf", (Record,), {"__annotations__": {}, "__module__": "elsewhere"})
