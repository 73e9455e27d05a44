"""Client requests: how many requests and bytes each client sent to a broker, read from its connections.

Kafka's protocol: each request and each answer follows its length in four bytes. A request begins with the key
of its kind, its version, its number and the client's name (https://kafka.apache.org/protocol, "Request
Header").
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from struct import Struct
from typing import Final, Self
from weakref import WeakKeyDictionary

from benchmarks.chaos.network import Connection

_LENGTH: Final = Struct(">i")
_HEADER: Final = Struct(">hhih")
"""Key of the kind, version, number, bytes of the client's name (-1: none)."""

KINDS: Final = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    12: "Heartbeat",
    22: "InitProducerId",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    28: "TxnOffsetCommit",
    68: "ConsumerGroupHeartbeat",
}
"""Names of the kinds that a running worker sends; others have their number."""


@dataclass
class Counts:
    """Requests and bytes by client name."""

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By client and kind."""
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Bytes of requests with their lengths, by client and kind."""
    received: Counter[str] = field(default_factory=Counter)
    """Bytes of answers, by client."""

    def copy(self) -> Counts:
        return Counts(self.requests.copy(), self.sent.copy(), self.received.copy())

    def __sub__(self, earlier: Self) -> Counts:
        return Counts(
            self.requests - earlier.requests, self.sent - earlier.sent, self.received - earlier.received
        )


@dataclass(slots=True)
class _Sender:
    """The client's end of a connection: where its bytes are within a request."""

    client: str = ""
    kind: str = ""
    remaining: int = 0
    """Bytes of the present request that are still to come."""
    start: bytes = b""
    """The first bytes of a request whose header is not complete."""


class RequestCounter:
    """Counts what passes a `Network`, whose tap it is."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._senders: WeakKeyDictionary[Connection, _Sender] = WeakKeyDictionary()

    def __call__(self, connection: Connection, from_client: bool, data: bytes) -> None:
        sender = self._senders.setdefault(connection, _Sender())
        if from_client:
            self._take(sender, data)
        else:
            self.counts.received[sender.client] += len(data)

    def _take(self, sender: _Sender, data: bytes) -> None:
        while data:
            if sender.remaining:
                n = min(sender.remaining, len(data))
                sender.remaining -= n
                self.counts.sent[sender.client, sender.kind] += n
                data = data[n:]
                continue
            data, sender.start = sender.start + data, b""
            if not self._begin(sender, data):
                sender.start = data
                return

    def _begin(self, sender: _Sender, data: bytes) -> bool:
        """Read the header of a request; return whether all of it is there."""
        fixed = _LENGTH.size + _HEADER.size
        if len(data) < fixed:
            return False
        (length,) = _LENGTH.unpack_from(data)
        kind, _, _, name_length = _HEADER.unpack_from(data, _LENGTH.size)
        end = fixed + max(0, name_length)
        if len(data) < end:
            return False
        sender.client = data[fixed:end].decode()
        sender.kind = KINDS.get(kind, str(kind))
        sender.remaining = _LENGTH.size + length
        self.counts.requests[sender.client, sender.kind] += 1
        return True
