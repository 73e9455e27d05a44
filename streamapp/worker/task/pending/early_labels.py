"""Early labels: held back until their instance comes, because the topics are only roughly in step.

A held label is learned with its instance, at once (test-then-train). If the instance does not come within the
hold time, or there is no room, the label is given up and counted as unknown. A released label leaves its name
until the hold time is over, so that a duplicate is recognised.

As with pending instances, every decision uses the clock at its record, and `rollback` undoes a run.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from core.schema.names import text_bytes
from streamapp.worker.task.effects.effects import Origin
from streamapp.worker.task.pending.event_time import NO_TIME
from streamapp.worker.task.pending.name_columns import Name

HELD_BYTES: Final = 700
"""Bytes of a held label in addition to its record: id, name, place, object, key, and the list of headers."""

TEXT_BYTES: Final = 128
"""Bytes of its names and headers that `HELD_BYTES` includes; longer texts count in addition."""


class HeldLabel(NamedTuple):
    """A label without its instance."""

    label: str  # class name
    weight: float
    born: int  # clock when it came
    origin: Origin  # for the dead letter, should the class not be admitted
    block_row: int | None  # its row, if the record is a block
    value_bytes: int  # its share of the record
    released: bool = False

    def size(self, name: Name) -> int:
        """Return the bytes it takes under its name."""
        texts = text_bytes(name[0]) + text_bytes(name[1]) + text_bytes(self.label)
        texts += len(self.origin.key or b"")
        if self.origin.headers:
            texts += sum(len(header) + len(value or b"") for header, value in self.origin.headers)
        return HELD_BYTES + self.value_bytes + max(0, texts - TEXT_BYTES)


class EarlyLabels:
    """The held labels of one partition, oldest first."""

    def __init__(self, hold_ms: int, max_bytes: int) -> None:
        self._hold_ms = hold_ms
        self._max_bytes = max_bytes
        self._held: OrderedDict[Name, HeldLabel] = OrderedDict()
        self._undo: list[tuple[Literal["held", "changed", "gone"], Name, HeldLabel]] = []
        self._given_up_before = 0
        self.bytes = 0
        self.given_up = 0  # labels whose instance did not come

    def configure(self, hold_ms: int, max_bytes: int) -> None:
        """Change the bounds."""
        self._hold_ms, self._max_bytes = hold_ms, max_bytes

    def __len__(self) -> int:
        """Return the number of names remembered."""
        return len(self._held)

    @property
    def waiting(self) -> int:
        """Return how many labels still wait for their instance."""
        return sum(not label.released for label in self._held.values())

    def knows_none_of(self, names: Sequence[Name]) -> bool:
        """Return whether none of the names has a held label."""
        return not self._held or self._held.keys().isdisjoint(names)

    def knows(self, name: Name) -> bool:
        """Return whether a name has a label here, held or released."""
        return name in self._held

    def find(self, name: Name, clock: int) -> HeldLabel | None:
        """Return the label held (or released) for a name at `clock`."""
        label = self._held.get(name)
        return None if label is None or clock - label.born > self._hold_ms else label

    def hold(self, name: Name, label: HeldLabel) -> None:
        """Hold a label back; its name has none (or one that is due to be given up)."""
        self.expire(label.born)
        self._held[name] = label
        self.bytes += label.size(name)
        self._undo.append(("held", name, label))
        while self.bytes > self._max_bytes:
            self._give_up()

    def release(self, name: Name) -> None:
        """Note that the instance of a held label came."""
        label = self._held[name]
        self._held[name] = label._replace(released=True)
        self._undo.append(("changed", name, label))

    def expire(self, clock: int) -> None:
        """Give up the labels whose hold time is over."""
        while self._held and clock - next(iter(self._held.values())).born > self._hold_ms:
            self._give_up()

    def turn(self, clock: int) -> None:
        """Set the time to `clock` for labels that came under a wrong later clock, or before it began."""
        for name, label in self._held.items():
            if label.born > clock or label.born == NO_TIME:
                self._held[name] = label._replace(born=clock)
                self._undo.append(("changed", name, label))

    def checkpoint(self) -> None:
        """Begin a run: what happened before is final."""
        self._undo.clear()
        self._given_up_before = self.given_up

    def rollback(self) -> None:
        """Undo everything since `checkpoint`."""
        for change, name, label in reversed(self._undo):
            if change == "held":
                del self._held[name]
                self.bytes -= label.size(name)
            elif change == "changed":
                self._held[name] = label
            else:
                self._held[name] = label
                self._held.move_to_end(name, last=False)
                self.bytes += label.size(name)
        self._undo.clear()
        self.given_up = self._given_up_before

    def image(self) -> dict[Name, HeldLabel]:
        """Return the held labels as they are now, oldest first."""
        return dict(self._held)

    def load(self, labels: Mapping[Name, HeldLabel]) -> None:
        """Take in the labels of an `image`."""
        self._held = OrderedDict(labels)
        self.bytes = sum(label.size(name) for name, label in labels.items())

    def _give_up(self) -> None:
        name, label = self._held.popitem(last=False)
        self.bytes -= label.size(name)
        self.given_up += not label.released
        self._undo.append(("gone", name, label))
