"""The packed layout: a header of 16 bytes, then fixed little-endian columns, then texts.

     0  u8[2]  magic 0xD6 0x47
     2  u8     version of the layout: 1
     3  u8     kind: 1 instance, 2 label, 3 prediction
     4  u8     bytes of a value: 8 float64, 4 float32
     5  u8     flags
     6  u16    bytes of the id (0: none)
     8  u32    count of values
    12  i32    label: a whole number, or with TEXT the bytes of its name;  a prediction: class code, -1 none
    16  f64    weight, only with WEIGHT;          a prediction: i64 model version
        then the values; then label text, id, annotator (instance and label)
                         or id, class names, float32 raw probabilities [class] with RAW, the set as a bit
                         of each class with SET (from the lowest bit of the first byte), explanation
                         (prediction)

The values of float64 records lie on multiples of 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from topics.codecs.content_types import PACKED_FIRST_BYTE
from topics.codecs.flaws import Flaw
from topics.errors import Reason

MAGIC: Final = bytes([PACKED_FIRST_BYTE, 0x47])
VERSION: Final = 1
INSTANCE, LABEL, PREDICTION = 1, 2, 3

HAS_LABEL: Final = 1
TEXT: Final = 2
HAS_WEIGHT: Final = 4
DECLINED: Final = 8
HAS_ANNOTATOR: Final = 16
HAS_EXPLANATION: Final = 32
HAS_RAW: Final = 64
HAS_SET: Final = 128

INSTANCE_FLAGS: Final = HAS_LABEL | TEXT | HAS_WEIGHT
_FLAGS = {
    INSTANCE: INSTANCE_FLAGS,
    LABEL: HAS_LABEL | TEXT | HAS_WEIGHT | DECLINED | HAS_ANNOTATOR,
    PREDICTION: HAS_EXPLANATION | HAS_RAW | HAS_SET,
}
_KINDS = {INSTANCE: "instance", LABEL: "label", PREDICTION: "prediction"}

NAME_MAX_BYTES: Final = 2**16 - 1  # bytes of an id or a class name
HEADER: Final = Struct("<2sBBBBHIi")
LABEL_AT: Final = 12  # the records of a group have the same bytes before it
DTYPES: Final = {8: "<f8", 4: "<f4"}


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a record, and the places of its parts."""

    kind: int
    value_bytes: int
    flags: int
    id_bytes: int
    count: int
    label: int

    @property
    def values_at(self) -> int:
        return HEADER.size + (8 if self.flags & HAS_WEIGHT or self.kind == PREDICTION else 0)

    @property
    def texts_at(self) -> int:
        """Return the offset after the last value."""
        return self.values_at + self.count * self.value_bytes

    @property
    def text_bytes(self) -> int:
        """Return the bytes of the label's name, 0 for a number."""
        return self.label if self.flags & TEXT else 0

    @property
    def known_bytes(self) -> int:
        """Return the bytes of everything but the annotator, the class names and the explanation."""
        return self.texts_at + self.text_bytes + self.id_bytes


def read_header(value: bytes, kind: int) -> Header | Flaw:
    """Return the header of a record of this kind; a flaw if it is invalid or the length does not match."""
    if len(value) < HEADER.size:
        return Flaw(Reason.WRONG_LENGTH, f"{len(value)} bytes; the header alone has {HEADER.size}")
    magic, version, found, value_bytes, flags, id_bytes, count, label = HEADER.unpack_from(value)
    if magic != MAGIC:
        return Flaw(Reason.BAD_HEADER, f"magic={magic.hex()} must be {MAGIC.hex()}")
    if version != VERSION:
        return Flaw(Reason.BAD_HEADER, f"version={version} must be {VERSION}")
    if found != kind:
        return Flaw(Reason.BAD_HEADER, f"kind={found} must be {kind} ({_KINDS[kind]}) on this topic")
    if value_bytes not in DTYPES:
        return Flaw(Reason.BAD_HEADER, f"bytes of a value={value_bytes} must be 8 (float64) or 4 (float32)")
    if flags & ~_FLAGS[kind]:
        return Flaw(Reason.BAD_HEADER, f"flags={flags:#04x} must be within {_FLAGS[kind]:#04x} for this kind")
    if flags & TEXT and (label < 1 or not flags & HAS_LABEL):
        return Flaw(
            Reason.BAD_HEADER, f"label={label} must be the bytes of a class name, at least 1, with flag 1"
        )
    header = Header(kind, value_bytes, flags, id_bytes, count, label)
    open_ended = kind == PREDICTION or flags & HAS_ANNOTATOR
    if len(value) < header.known_bytes or (len(value) > header.known_bytes and not open_ended):
        return Flaw(
            Reason.WRONG_LENGTH, f"{len(value)} bytes; the header has lengths for {header.known_bytes}"
        )
    return header
