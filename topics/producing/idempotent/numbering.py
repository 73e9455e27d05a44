"""Numbering: the producer id, epoch and sequence numbers under which a partition's batches are sent."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from topics.producing.batch_encoder import sealed
from topics.producing.batch_kernel import SEQUENCES
from topics.producing.transaction_requests import ProducerIdentity

LAST_EPOCH: Final = (1 << 15) - 1

_NUMBERS: Final = Struct(">qhi")
"""Producer id, epoch and first sequence number in the head of a batch."""
_NUMBERS_AT: Final = 43


@dataclass(slots=True)
class Numbering:
    """The identity of a partition's batches, and the sequence number of the next one."""

    identity: ProducerIdentity
    following: int = 0

    def numbered(self, wire: bytes) -> bytes:
        """Return a batch as the next one of the partition: unchanged if it has these numbers already."""
        numbers = self.identity.producer, self.identity.epoch, self.following
        if _NUMBERS.unpack_from(wire, _NUMBERS_AT) == numbers:
            return wire
        whole = bytearray(wire)
        _NUMBERS.pack_into(whole, _NUMBERS_AT, *numbers)
        return sealed(whole)

    def passed(self, count: int) -> None:
        """Go on after a batch of `count` records, which the broker has."""
        self.following = (self.following + count) % SEQUENCES

    @property
    def next_epoch(self) -> Numbering | None:
        """The numbering that a broker takes whatever it has of this one; None if there are no more epochs.

        Brokers give out epochs of transactional producers alone; others raise theirs by themselves (KIP-360).
        """
        if self.identity.epoch >= LAST_EPOCH:
            return None
        return Numbering(ProducerIdentity(self.identity.producer, self.identity.epoch + 1))
