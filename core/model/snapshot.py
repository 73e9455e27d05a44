"""Snapshot: a model as bytes (header, spec, schema, the live part of its buffer, checksum).

    8  magic                    "grovemdl"
    4  format version           of this frame, uint32 little-endian (as all that follows)
    4  state version            of the meaning of the words and of the spec (core/state_version.py)
    4+4+4  bytes of platform tag, spec, schema
    8  words
       platform tag, spec JSON, schema JSON, zeros up to a multiple of 8
       words                    int64 or float64, little-endian
    4  CRC-32 of everything before

The words are the buffer without unused room: models with the same history have the same bytes, independent of
when and how often they were saved. Floats never go through text, nothing is pickled. The platform tag
identifies the platform that computed the numbers. A restored model continues bit for bit on the same
platform, and up to rounding elsewhere.
"""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import struct
import sys
import zlib
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from core.errors import GroveError, OtherReleaseSnapshotError, SnapshotError, SpecError
from core.kernels import jit
from core.kernels.records import offset
from core.layout.model import WORD, Ints, ModelHeader
from core.model import buffers, soundness
from core.model.buffers import Block
from core.model.upgrade import upgraded
from core.plan import Plan
from core.schema.schema import Schema
from core.spec import Spec
from core.state_version import READABLE
from core.tree import allocation

MAGIC: Final = b"grovemdl"
FORMAT_VERSION: Final = 1

KEPT: Final = 64
"""Number of pairs of spec and schema that are cached, with their plan, as text and as objects."""

KEPT_BYTES: Final = 16 << 10
"""Largest size of the texts of a cached pair."""

_FIXED = struct.Struct("<8sIIIIIQ")
_CHECKSUM = struct.Struct("<I")
_WORDS, _FIRST, _SECOND = (offset(ModelHeader, name) for name in ("words", "first", "second"))


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a snapshot, parsed."""

    platform: str
    spec: Spec
    schema: Schema
    words: int
    state: int
    """State version."""


@dataclass(frozen=True, eq=False)
class _Preamble:
    """Parsed texts of a header, shared by the many models that have the same texts."""

    platform: str
    spec: Spec
    schema: Schema
    state: int

    @functools.cached_property
    def plan(self) -> Plan:
        """The shared plan; SchemaError if the learner does not support the schema."""
        return Plan.of(self.spec, self.schema)


@functools.cache
def platform_tag() -> str:
    """Return what the last bits of floats depend on: architecture, C library, CPU features, numba.

    Mathematical functions of the C library and of numpy give other last bits on processors with fused
    multiply-add or wider vectors: the libraries choose an implementation at run time.
    """
    library, version = platform.libc_ver()
    name = f"{library or sys.platform}-{version or platform.release()}"
    numba = f"numba-{importlib.metadata.version('numba')}"
    return f"{platform.machine()} {name} {numba} cpu-{jit.cpu_features()}"


def write(plan: Plan, ints: Ints) -> bytes:
    """Return the snapshot of a model's buffer."""
    words = trim(plan, ints)
    body = _preamble(plan, len(words)) + words.astype("<i8", copy=False).tobytes()
    return body + _CHECKSUM.pack(zlib.crc32(body))


def trim(plan: Plan, ints: Ints) -> Ints:
    """Return the buffer without unused room and with its blocks in order; itself if it is so already."""
    blocks = buffers.blocks(plan, ints)
    live = [Block(block.source, plan.blocks.live_room(ints, block.source)) for block in blocks]
    if blocks == live:
        return ints
    return buffers.relayout(plan, ints, plan, live)


def _preamble(plan: Plan, words: int) -> bytes:
    head, texts = _texts(plan)
    return _FIXED.pack(MAGIC, FORMAT_VERSION, *head, words) + texts


def _texts(plan: Plan) -> tuple[tuple[int, ...], bytes]:
    """Return state version and sizes of the texts before the words, and the texts, padded to a whole word."""
    return _texts_kept(plan) if plan.schema.content_bytes <= KEPT_BYTES else _texts_made(plan)


@functools.lru_cache(maxsize=KEPT)
def _texts_kept(plan: Plan) -> tuple[tuple[int, ...], bytes]:
    return _texts_made(plan)


def _texts_made(plan: Plan) -> tuple[tuple[int, ...], bytes]:
    parts = [platform_tag().encode(), plan.spec.to_json().encode(), plan.schema.to_json().encode()]
    texts = b"".join(parts)
    head = plan.spec.state_version, *map(len, parts)
    return head, texts + bytes(-(_FIXED.size + len(texts)) % WORD)


def read(data: bytes | memoryview) -> tuple[Plan, Ints]:
    """Return plan and buffer of a snapshot; SnapshotError if it is not one, or unsafe for kernels.

    The checksum shows that the bytes are complete, not that their author is trusted: so every word that
    kernels rely on is checked.
    """
    preamble, n_words, start = _open(data)
    end = start + n_words * WORD
    if len(data) != end + _CHECKSUM.size:
        msg = f"snapshot={len(data)} bytes must be {end + _CHECKSUM.size}: it is cut off, or too long"
        raise SnapshotError(msg)
    if _CHECKSUM.unpack_from(data, end)[0] != zlib.crc32(memoryview(data)[:end]):
        msg = "snapshot must match its checksum: it was altered on its way"
        raise SnapshotError(msg)
    plan = preamble.plan
    words = np.frombuffer(data, dtype="<i8", count=n_words, offset=start)
    ints = upgraded(plan, allocation.aligned_copy(words), preamble.state)
    check_words(plan, ints)
    return plan, ints


def check_words(plan: Plan, ints: Ints) -> None:
    """Raise SnapshotError for wrong sizes of words, or values that are unsafe for kernels."""
    _check_sizes(plan, ints)
    soundness.check(plan, ints)


def describe(data: bytes) -> Header:
    """Return the header of a snapshot, without reading the model's state."""
    preamble, n_words, _ = _open(data)
    return Header(preamble.platform, preamble.spec, preamble.schema, n_words, preamble.state)


def _open(data: bytes | memoryview) -> tuple[_Preamble, int, int]:
    """Return the parsed header of a snapshot, its number of words, and the place of the first one."""
    if len(data) < _FIXED.size or data[: len(MAGIC)] != MAGIC:
        msg = f"snapshot must begin with {MAGIC!r} and a header of {_FIXED.size} bytes: these are other bytes"
        raise SnapshotError(msg)
    _, form, state, tag_size, spec_size, schema_size, words = _FIXED.unpack_from(data)
    if form != FORMAT_VERSION or state not in READABLE:
        msg = (
            f"snapshot has format {form} and state version {state}; this build reads format "
            f"{FORMAT_VERSION} and state versions {', '.join(map(str, READABLE))}"
        )
        raise OtherReleaseSnapshotError(msg)
    end = _FIXED.size + tag_size + spec_size + schema_size
    if end > len(data):
        msg = f"snapshot={len(data)} bytes must be more than {end}: it is cut off"
        raise SnapshotError(msg)
    try:
        preamble = _parsed(state, tag_size, spec_size, bytes(data[_FIXED.size : end]))
    except SpecError as error:
        msg = f"snapshot holds a spec or schema that this build cannot build: {error}"
        raise OtherReleaseSnapshotError(msg) from error
    except (GroveError, UnicodeDecodeError) as error:
        msg = f"snapshot holds a spec or schema that this build cannot build: {error}"
        raise SnapshotError(msg) from error
    return preamble, words, end + -end % WORD


class _Latest:
    """The texts that were parsed last; nearly all models of a partition have the same.

    To compare the bytes takes a tenth of the time that a cache needs to hash them.
    """

    parsed: ClassVar[tuple[tuple[int, int, int, bytes], _Preamble] | None] = None


def _parsed(state: int, tag_size: int, spec_size: int, texts: bytes) -> _Preamble:
    """Return the parsed texts of a header: platform tag, spec and schema, one after the other."""
    key, latest = (state, tag_size, spec_size, texts), _Latest.parsed
    if latest is not None and latest[0] == key:
        return latest[1]
    if len(texts) > KEPT_BYTES:
        return _parsed_anew(*key)
    preamble = _parsed_kept(*key)
    _Latest.parsed = key, preamble
    return preamble


@functools.lru_cache(maxsize=KEPT)
def _parsed_kept(state: int, tag_size: int, spec_size: int, texts: bytes) -> _Preamble:
    return _parsed_anew(state, tag_size, spec_size, texts)


def _parsed_anew(state: int, tag_size: int, spec_size: int, texts: bytes) -> _Preamble:
    tag, spec, schema = texts[:tag_size], texts[tag_size:][:spec_size], texts[tag_size + spec_size :]
    parse = _spec_kept if len(spec) <= KEPT_BYTES else Spec.parse
    return _Preamble(tag.decode(), parse(spec, state), Schema.from_json(schema), state)


@functools.lru_cache(maxsize=KEPT)
def _spec_kept(text: bytes, state: int) -> Spec:
    """Return the spec of a text, one object for models of all schemas."""
    return Spec.parse(text, state)


def _check_sizes(plan: Plan, ints: Ints) -> None:
    """Refuse words that do not fit their plan: kernels rely on the stored sizes."""
    if not _are_sizes_right(plan, ints):
        msg = "snapshot's words must fit its spec and schema: it was put together wrongly"
        raise SnapshotError(msg)


def _are_sizes_right(plan: Plan, ints: Ints) -> bool:
    words, position = len(ints), int(plan.record.blocks)
    if words <= position or ints.item(_WORDS) != words or ints.item(_FIRST) != position:
        return False
    starts = []
    while position < words:
        size = plan.blocks.size_of(ints, position)
        if size is None or buffers.block_words(ints, position) != size:
            return False
        starts.append(position)
        position += size
    second = starts[1] if len(starts) > 1 else 0
    return position == words and ints.item(_SECOND) == second
