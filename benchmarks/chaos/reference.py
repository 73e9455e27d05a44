"""The undisturbed worker: what the journal makes of the logs, in one go and in one process.

Workers cut the journal off behind their snapshots. So it is read along from the beginning while they work
(`tape.py`), and the models of the end are those of a replay that knows no snapshot and keeps every model in
memory, whatever `models.max.bytes` the workers had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from streamapp.journal.entry import SOURCES, Entry, decode
from streamapp.restore.log_reader import LogReader
from streamapp.restore.replay import Replay
from streamapp.task.model_memory import ModelMemory
from streamapp.task.task import Source
from topics.definitions import TopicNames


class Reference:
    """The models that the whole journal makes, in one go."""

    def __init__(self, servers: str, names: TopicNames, journal: Mapping[int, Sequence[bytes]]) -> None:
        """`journal`: the values of each partition's records, from the first one on."""
        self._servers = servers
        self._names = names
        self._journal = journal

    def models(self) -> dict[str, bytes]:
        """Return the snapshot of every model by key."""
        found: dict[str, bytes] = {}
        for number, values in self._journal.items():
            with ExitStack() as open_readers:
                replay = Replay(
                    number,
                    lambda source, at: self._log(open_readers, source, number, at),  # noqa: B023
                    ModelMemory(limit=0),
                )
                for record in map(decode, values):
                    if isinstance(record, Entry):
                        replay.apply(record)
                if replay.task is not None:
                    store = replay.task.models
                    found |= {key: store.model(slot).snapshot() for slot, key in store.keys.items()}
        return found

    def _log(self, readers: ExitStack, source: Source, partition: int, position: int) -> LogReader:
        kafka = {"bootstrap.servers": self._servers, "log_level": 0}
        reader = readers.enter_context(LogReader(kafka, "chaos-reference", lambda: False))
        assert source in SOURCES
        reader.open(getattr(self._names, source), partition, position)
        return reader
