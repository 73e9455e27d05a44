"""Records: the same fields in compiled code and in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.kernels import jit
from core.kernels.jit import kernel, register, words_at
from core.kernels.records import Record, offset, row_type, rows, word, words_after


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


@kernel("float64(Shelf, float64[::1], int64)")
def fill(shelf: Shelf, weights: Any, books: int) -> float:
    """Put the first books of an array on a shelf; return the weight of the shelf."""
    for book in range(books):
        shelf.weights[shelf.books] = weights[book]
        shelf.books += 1
        shelf.weight += weights[book]
    return shelf.weight


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


def test_an_entry_kernel_takes_records_beside_arrays(words: Any) -> None:
    shelf = Room(words, words.view(np.float64), 2).shelf(1)
    assert fill(shelf, np.array([0.5, 2.0, 4.0]), 2) == 2.5
    assert shelf.weights[:2].tolist() == [0.5, 2.0]
    assert words[9] == 2


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
def test_an_entry_kernel_refuses_arguments_of_other_types(words: Any) -> None:
    room, weights = Room(words, words.view(np.float64), 2), np.ones(3)
    shelf = room.shelf(1)
    assert fill(shelf, weights, 0) == 0.0
    with pytest.raises(TypeError, match="must be of the class Shelf"):
        fill(room, weights, 1)  # type: ignore[arg-type]
    for others in (weights.astype(np.float32), np.ones((2, 2)), np.ones(6)[::2]):
        with pytest.raises(TypeError, match="must be float64"):
            fill(shelf, others, 1)
    with pytest.raises(TypeError):
        fill(Shelf([0, 0, 0, 0], [0.0] * 4, 0), weights, 1)  # a copy, as from Record.read
    assert not words[9:].any()


class Tariff(Record):
    """Words that no kernel writes."""

    is_constant = True

    price: float = word("price")


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
def test_a_kernel_that_writes_a_constant_record_is_refused(words: Any) -> None:
    @kernel
    def price_of(tariff: Any) -> float:
        return tariff.price  # type: ignore[no-any-return]

    @kernel
    def raise_price(tariff: Any) -> None:
        tariff.price += 1.0

    tariff = Tariff.over(words)
    tariff.price = 3.0
    assert price_of(tariff) == 3.0
    tariff.price = 4.0
    assert price_of(tariff) == 4.0
    with pytest.raises(Exception, match=r"Tariff\.price must not be written by a kernel"):
        raise_price(tariff)
    assert tariff.price == 4.0


def test_rows_have_the_fields_as_columns(words: Any) -> None:
    shelves = rows(words[4:19], row_type(Shelf, 5, after=3))
    shelves.books = 1
    shelves.weights[1, 0] = 2.0
    shelves.weight[1:] = [3.0, 4.0]
    assert shelves.books.tolist() == [1, 1, 1]
    assert shelves[1].weights.tolist() == [2.0, 0.0, 0.0]
    assert Room(words, words.view(np.float64), 2).shelf(2).weight == 4.0
    shelves[:1] = shelves[1:2]
    assert shelves[shelves.weight > 2.0].weight.tolist() == [3.0, 3.0, 4.0]
    assert len(shelves) == 3
    with pytest.raises(AttributeError, match="pages"):
        _ = shelves.pages


def test_offsets_follow_the_order_of_the_fields() -> None:
    assert Shelf.SIZE == 2
    assert [offset(Shelf, name) for name in Shelf.FIELDS] == [0, 1]
    assert Shelf.FIELDS["books"].meaning == "books"
    assert (Shelf.FIELDS["books"].low, Shelf.FIELDS["books"].high) == (0, 10)


def test_two_records_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="name='Shelf' must name one type"):
        type("Shelf", (Record,), {"__annotations__": {}, "__module__": "elsewhere"})
