"""A model as bytes: header, spec, schema, the live part of its buffer, checksum.

    8  magic                    "grovemdl"
    4  format version           of this frame, uint32 little-endian (as all that follows)
    4  state version            of the meaning of the words
    4+4+4  bytes of platform tag, spec, schema
    8  words
       platform tag, spec JSON, schema JSON, zeros up to a multiple of 8
       words                    int64 or float64, little-endian
    4  CRC-32 of everything before

The words are those of the buffer, with no room to spare: two models that have gone through the same have the
same bytes, whenever and however often they were saved. Floats never go through text, nothing is pickled. The
platform tag says where the numbers were made: there a restored model goes on to the bit, elsewhere to
rounding.
"""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import struct
import sys
import zlib
from dataclasses import dataclass
from typing import Final

import numpy as np

from core import arena
from core.arena import Block
from core.errors import GroveError, SnapshotError
from core.features import Schema
from core.plan import Plan
from core.spec import Spec
from core.tree import layout as at
from core.tree.layout import Ints

MAGIC: Final = b"grovemdl"
FORMAT_VERSION: Final = 1
STATE_VERSION: Final = 4
"""Raised whenever words change their meaning or their order."""

_FIXED = struct.Struct("<8sIIIIIQ")
_CHECKSUM = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Header:
    """What a snapshot says of itself."""

    platform: str
    spec: Spec
    schema: Schema
    words: int


@functools.cache
def platform_tag() -> str:
    """Return architecture, C library and numba: what the last bits of floats depend on."""
    library, version = platform.libc_ver()
    name = f"{library or sys.platform}-{version or platform.release()}"
    return f"{platform.machine()} {name} numba-{importlib.metadata.version('numba')}"


def write(plan: Plan, ints: Ints) -> bytes:
    """Return the snapshot of a model's buffer."""
    words = trim(plan, ints)
    body = _preamble(plan, len(words)) + words.astype("<i8", copy=False).tobytes()
    return body + _CHECKSUM.pack(zlib.crc32(body))


def trim(plan: Plan, ints: Ints) -> Ints:
    """Return the buffer without room to spare and with its trees in order (itself, if it is so already)."""
    blocks = arena.blocks(ints)
    wanted = [
        Block(t, int(ints[t + at.TREE_NODES]), int(ints[t + at.TREE_SLOTS]))
        for t in (block.source for block in blocks)
    ]
    if blocks == wanted:
        return ints
    return arena.relayout(plan, ints, plan, wanted)


def _preamble(plan: Plan, words: int) -> bytes:
    sizes, texts = _texts(plan)
    return _FIXED.pack(MAGIC, FORMAT_VERSION, STATE_VERSION, *sizes, words) + texts


@functools.lru_cache(maxsize=256)
def _texts(plan: Plan) -> tuple[tuple[int, ...], bytes]:
    """Return the sizes of the texts before the words, and the texts, filled up to a whole word."""
    parts = [platform_tag().encode(), plan.spec.to_json().encode(), plan.schema.to_json().encode()]
    texts = b"".join(parts)
    return tuple(map(len, parts)), texts + bytes(-(_FIXED.size + len(texts)) % at.WORD)


def read(data: bytes) -> tuple[Plan, Ints]:
    """Return plan and buffer of a snapshot."""
    header, start = _read_header(data)
    end = start + header.words * at.WORD
    if len(data) != end + _CHECKSUM.size:
        msg = f"snapshot={len(data)} bytes must be {end + _CHECKSUM.size}: it is cut off or goes on"
        raise SnapshotError(msg)
    if _CHECKSUM.unpack_from(data, end)[0] != zlib.crc32(memoryview(data)[:end]):
        msg = "snapshot must match its checksum: it was altered on its way"
        raise SnapshotError(msg)
    plan = Plan.of(header.spec, header.schema)
    ints = at.aligned_words(header.words)
    ints[:] = np.frombuffer(data, dtype="<i8", count=header.words, offset=start)
    _check_sizes(plan, ints)
    return plan, ints


def describe(data: bytes) -> Header:
    """Return what a snapshot says of itself, without looking at its state."""
    return _read_header(data)[0]


def _read_header(data: bytes) -> tuple[Header, int]:
    """Return the header and where the words begin."""
    if len(data) < _FIXED.size or data[:8] != MAGIC:
        msg = f"snapshot must begin with {MAGIC!r} and a header of {_FIXED.size} bytes: these are other bytes"
        raise SnapshotError(msg)
    _, form, state, tag_size, spec_size, schema_size, words = _FIXED.unpack_from(data)
    if (form, state) != (FORMAT_VERSION, STATE_VERSION):
        msg = (
            f"snapshot has format {form} and state version {state}; "
            f"this build reads format {FORMAT_VERSION} and state version {STATE_VERSION}"
        )
        raise SnapshotError(msg)
    position = _FIXED.size
    texts = []
    for size in (tag_size, spec_size, schema_size):
        texts.append(bytes(data[position : position + size]))
        position += size
    if position > len(data):
        msg = f"snapshot={len(data)} bytes must be more than {position}: it is cut off"
        raise SnapshotError(msg)
    try:
        tag, (spec, schema) = texts[0].decode(), _parsed(texts[1], texts[2])
    except (GroveError, UnicodeDecodeError) as error:
        msg = f"snapshot holds a spec or schema that this build cannot build: {error}"
        raise SnapshotError(msg) from error
    return Header(tag, spec, schema, words), position + -position % at.WORD


@functools.lru_cache(maxsize=256)
def _parsed(spec: bytes, schema: bytes) -> tuple[Spec, Schema]:
    """Return what the texts say; ten thousand models of a partition say the same."""
    return Spec.parse(spec), Schema.from_json(schema)


def _check_sizes(plan: Plan, ints: Ints) -> None:
    """Refuse words that do not fit their plan: kernels trust the sizes they find."""
    words, position = len(ints), int(plan.ints[at.PLAN_TREES])
    problem = SnapshotError("snapshot's words must fit its spec and schema: it was put together wrongly")
    if words < position + at.TREE_HEADER or ints[at.MODEL_WORDS] != words or ints[at.MODEL_MAIN] != position:
        raise problem
    for t in (int(ints[word]) for word in (at.MODEL_MAIN, at.MODEL_BACKGROUND) if ints[word]):
        if t != position or t + at.TREE_HEADER > words:
            raise problem
        nodes, slots = arena.room(ints, t)
        if not (0 < nodes <= words and 0 < slots <= words):
            raise problem
        shape = plan.shape(nodes, slots)
        header = np.zeros(at.TREE_HEADER, dtype=np.int64)
        at.write_tree_header(header, shape)
        sizes = [at.TREE_WORDS, at.TREE_NODE_STRIDE, at.TREE_LEAF_STRIDE, at.TREE_LEAVES_AT]
        if any(ints[t + word] != header[word] for word in [*sizes, at.TREE_NOMINAL_AT]):
            raise problem
        position += shape.words
    if position != words:
        raise problem
