"""Model files and import controls that are damaged or lie about sizes: refused, and all else goes on.

Small samples here, every bit and length by night. What a file takes in memory is bounded by its own size,
whatever it says of itself.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
import tracemalloc
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from core.errors import GroveError
from core.model import file as model_file
from core.model import snapshot
from core.model.file import FRAME
from streamapp.worker.task.models.files import importing
from streamapp.worker.task.models.files.exported import read_exported
from streamapp.worker.task.models.files.importing import Imports, ModelPart, RefusedPartError, control_values
from tests.topology.partition import NEVER, Partition, Record, config

FILE = (Path(__file__).parents[1] / "golden" / "exported-1-7.grove").read_bytes()
FRAME_FIXED = struct.Struct("<8sIIQ")  # magic, format, bytes of head and body
MODEL_FIXED = snapshot._FIXED  # magic, format, state version, three sizes of texts, words
SIZES = (0, 1, 7, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**48, 2**63 - 1, 2**63, 2**64 - 1)
PEAK = 64 << 20
"""Bytes that reading a file of 3.5 kB may take; what says that it is 2**48 bytes long included."""


def sealed(head: bytes, body: bytes) -> bytes:
    """A file with checksums that fit."""
    return FRAME.seal(head, (body,))


def resealed(model: bytes) -> bytes:
    """The file of a model whose own checksum is made to fit."""
    inside = model[:-4] + struct.pack("<I", zlib.crc32(model[:-4]))
    return sealed(canonical(model_file.unwrap(FILE).head), inside)


def canonical(head: Any) -> bytes:
    return json.dumps(head).encode()


@contextmanager
def little_memory() -> Iterator[None]:
    """The block may take PEAK bytes at most; kernels are there before, for to compile them takes more."""
    read_exported(FILE)
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < PEAK


def is_refused(data: bytes) -> bool:
    """Whether a file is refused by an error that tells why; anything else that is raised fails the test."""
    try:
        read_exported(data)
    except GroveError as error:
        assert len(str(error)) > 20
        return True
    return False


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


NIGHTLY = pytest.param(None, marks=[pytest.mark.nightly, pytest.mark.timeout(7200)])


@pytest.mark.parametrize("sample", [200, NIGHTLY])
def test_every_flipped_bit_and_every_cut_is_noticed(sample: int | None) -> None:
    bits: Sequence[int] = range(8 * len(FILE))
    cuts: Sequence[int] = range(len(FILE))
    draw = random.Random(1)
    if sample is not None:
        header = range(8 * FRAME_FIXED.size)
        bits, cuts = [*header, *draw.sample(bits, sample)], draw.sample(cuts, sample)
    with little_memory():
        for bit in bits:
            assert is_refused(flipped(FILE, bit)), bit
        for cut in cuts:
            assert is_refused(FILE[:cut]), cut
            assert is_refused(FILE + FILE[:cut][:9] + b"x"), cut


@pytest.mark.parametrize("sample", [60, NIGHTLY])
def test_flipped_bits_below_checksums_that_fit_are_refused_or_a_model(sample: int | None) -> None:
    model = model_file.unwrap(FILE).snapshot
    bits: Any = range(8 * (len(model) - 4))
    if sample is not None:
        bits = random.Random(2).sample(bits, sample)
    with little_memory():
        for bit in bits:
            is_refused(resealed(flipped(model, bit)))


def test_sizes_that_lie_take_no_memory() -> None:
    contents = model_file.unwrap(FILE)
    head = canonical(contents.head)
    with little_memory():
        for size in SIZES:
            for field in (2, 3):  # of the file: bytes of head and body
                fields = [model_file.MAGIC, 1, len(head), len(contents.snapshot)]
                fields[field] = size & (2**32 - 1) if field == 2 else size
                lying = FRAME_FIXED.pack(*fields) + head + contents.snapshot
                assert is_refused(lying + hashlib.blake2b(lying, digest_size=8).digest()), (field, size)
            for field in (3, 4, 5, 6):  # of the model: bytes of its texts, words
                fields = list(MODEL_FIXED.unpack_from(contents.snapshot))
                fields[field] = size & (2**32 - 1) if field < 6 else size
                lying = MODEL_FIXED.pack(*fields) + contents.snapshot[MODEL_FIXED.size :]
                assert is_refused(resealed(lying)), (field, size)


ODD: tuple[Any, ...] = (None, True, -1, 2**63, 1.5, "", "x", [], [[]], {}, "9" * 1000)


def test_odd_members_of_a_head_are_refused_or_said() -> None:
    contents = model_file.unwrap(FILE)
    for member in [*contents.head, "more"]:
        for odd in ODD:
            is_refused(sealed(canonical(contents.head | {member: odd}), contents.snapshot))
        less = {name: value for name, value in contents.head.items() if name != member}
        is_refused(sealed(canonical(less), contents.snapshot))


@pytest.mark.parametrize(
    "rounds", [60, pytest.param(3000, marks=[pytest.mark.nightly, pytest.mark.timeout(7200)])]
)
def test_damaged_controls_leave_a_partition_that_imports_and_answers(rounds: int) -> None:
    draw = random.Random(rounds)
    partition = Partition(config(NEVER))
    parts = control_values(FILE, "x", size=-(-len(FILE) // 3), replace=True)
    for n in range(rounds):
        sent = list(parts)
        at = draw.randrange(len(sent))
        kind = n % 4
        if kind == 0:
            sent[at] = flipped(sent[at], draw.randrange(8 * len(sent[at])))
        elif kind == 1:
            sent[at] = sent[at][: draw.randrange(len(sent[at]))]
        elif kind == 2:
            body = orjson.loads(sent[at])
            body[draw.choice(list(body))] = draw.choice(ODD)
            sent[at] = json.dumps(body).encode()
        else:
            draw.shuffle(sent)
            sent += draw.choices(sent, k=2)
        partition.feed(*(Record("controls", b"k", value) for value in sent))
    assert {letter.reason for letter in partition.dead_letters} <= {
        *("bad-control", "not-json", "unknown-command", "wrong-type", "missing-field", "empty-record")
    }
    partition.feed(
        *(Record("controls", b"k", value) for value in control_values(FILE, "y", size=500, replace=True))
    )
    assert partition.task.models.keys[0] == "k"
    before = len(partition.predictions)
    partition.instances({"id": "i", "features": {"x": 1.0}}, key="k")
    assert len(partition.predictions) == before + 1


def test_small_parts_of_many_imports_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MAX_PARTS", 50)
    imports, crc = Imports(), zlib.crc32(b"x")

    def begin(first: int, last: int) -> None:
        for n in range(first, last):
            assert imports.take(f"k{n}", ModelPart("x", 1, 2, crc, b"x", False)) is None

    begin(0, 60)
    assert (len(imports), imports.given_up) == (50, 10)
    with pytest.raises(RefusedPartError, match="begin with part 1"):
        imports.take("k0", ModelPart("x", 2, 2, crc, b"x", False))
    imports.checkpoint()
    begin(60, 90)
    imports.rollback()
    assert list(imports.image()) == [f"k{n}" for n in range(10, 60)]
    again = Imports()
    again.load(imports.image())
    imports = again
    begin(60, 61)
    assert len(imports) == 50, "what was there before is counted"
    assert imports.take("k60", ModelPart("x", 2, 2, crc, b"x", False)) == b"xx"
    begin(61, 62)
    assert len(imports) == 50
