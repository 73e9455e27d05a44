"""Dead letter log: reads the topic of dead letters, and sends records to their topics again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from streamapp.errors import NotYetError
from streamapp.tools.dead_letters.read import DeadLetterRecord
from streamapp.tools.offline.errors import OfflineError
from streamapp.tools.offline.place import Place
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.log_reader import LogReader
from streamapp.worker.task.sources import SOURCES
from topics.clients.cluster import Cluster
from topics.clients.sender import Sender
from topics.definitions import TopicNames


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Conditions on dead letters; None and empty: no condition."""

    reasons: Collection[str] = ()
    key: str | None = None
    place: Place | None = None

    def has(self, letter: DeadLetterRecord) -> bool:
        return (
            (not self.reasons or letter.reason in self.reasons)
            and (self.key is None or letter.key_text == self.key)
            and (self.place is None or self.place == Place(letter.partition, letter.offset))
        )


class DeadLetterLog:
    """The dead letters of one prefix up to the present end of the topic; later records are not read."""

    def __init__(self, kafka: Mapping[str, Any], group: str, names: TopicNames) -> None:
        """`kafka`: client properties under Kafka's names; `group`: of the consumer, which never commits."""
        self._kafka, self._group = kafka, group
        self._topic = names.dead_letters
        self._sources = [source.topic(names) for source in SOURCES.values() if source.may_be_dead_letter]
        self._ranges: dict[int, tuple[int, int]] = {}

    def read(self, selection: DeadLetterFilter) -> Iterator[DeadLetterRecord]:
        """Yield dead letters, one partition at a time."""
        try:
            with LogReader(self._kafka, self._group, lambda: False) as reader:
                for partition, (first, end) in self._range_of_all(reader).items():
                    if selection.place is not None:
                        if (
                            selection.place.partition != partition
                            or not first <= selection.place.offset < end
                        ):
                            continue
                        first, end = selection.place.offset, selection.place.offset + 1
                    if first < end:
                        reader.open(self._topic, partition, first)
                        for raw in reader.up_to(end):
                            letters = (DeadLetterRecord.of(raw, at) for at in range(len(raw)))
                            yield from (letter for letter in letters if selection.has(letter))
        except NotYetError as error:
            message = f"topic {self._topic}: {error}; try again later"
            raise OfflineError(message) from error
        except RestoreError as error:  # retention has deleted the record
            message = f"topic {self._topic}: {error.reason}; try again"
            raise OfflineError(message) from error

    def one(self, place: Place) -> DeadLetterRecord:
        """Return the dead letter at a place; OfflineError if there is none."""
        for letter in self.read(DeadLetterFilter(place=place)):
            return letter
        message = f"topic {self._topic} has no record at {place}; 'grove dlq list' shows all dead letters"
        raise OfflineError(message)

    def send_back(self, selection: DeadLetterFilter, *, dry_run: bool) -> Returned:
        """Send dead letters to their topics again, with headers that count the attempts.

        Each goes to its original partition. `dry_run`: only return which would be sent.
        """
        returned = Returned()
        with closing(Sender(self._kafka)) as sender:
            for letter in self.read(selection):
                why_not = letter.why_not(self._sources, all_the_same=bool(selection.reasons))
                if why_not is not None:
                    returned.left[why_not] += 1
                    continue
                assert letter.topic is not None
                assert letter.origin is not None
                returned.sent[letter.topic] += 1
                if not dry_run:
                    record = [letter.value], [letter.key], [0], [letter.returned_headers]
                    sender.send_run(letter.topic, letter.origin[0], *record)
            sender.flush()
        return returned

    def _range_of_all(self, reader: LogReader) -> dict[int, tuple[int, int]]:
        """Return first offset and end of each partition, as they were at the first call."""
        if not self._ranges:
            count = Cluster(self._kafka).partition_count(self._topic)
            self._ranges = {number: reader.of(self._topic, number).range() for number in range(count)}
        return self._ranges


class Returned:
    """Counts of records that were, or would be, sent again."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()  # by topic
        self.left: Counter[str] = Counter()  # by reason

    @property
    def n(self) -> int:
        return self.sent.total()
