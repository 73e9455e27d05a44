"""Whatever arrives in whatever pieces: every record once, in the order of its topic, and in time order."""

from hypothesis import given
from hypothesis import strategies as st

from streamapp.worker.transport.runs import FetchedColumns, TimeOrder
from topics.columns.spans import RecordSpans

TOPICS = ("controls", "instances", "labels")

logs = st.fixed_dictionaries(
    {topic: st.lists(st.tuples(st.integers(0, 60), st.integers(1, 3)), max_size=25) for topic in TOPICS}
)


class Log:
    """A log with holes: records at rising offsets, and markers behind the last one."""

    def __init__(self, records: list[tuple[int, int]]) -> None:
        self.records: list[tuple[int, int]] = []  # offset, timestamp
        offset = -1
        for timestamp, step in records:
            offset += step
            self.records.append((offset, timestamp))
        self.end = offset + 2
        self.fetched = 0

    def fetch(self, n: int) -> FetchedColumns:
        some = self.records[self.fetched : self.fetched + n]
        self.fetched += len(some)
        done = self.fetched == len(self.records)
        position = self.end if done else self.records[self.fetched][0]
        offsets = [offset for offset, _ in some]
        rows = len(some)
        times = [t for _, t in some]
        records = RecordSpans.of(offsets, times, [None] * rows, [bytes(50)] * rows, [()] * rows)
        return FetchedColumns(records, position, self.end)


@given(
    logs,
    st.integers(0, 20),
    st.integers(1, 6),
    st.lists(st.tuples(st.sampled_from(TOPICS), st.integers(0, 7)), max_size=60),
    st.integers(1, 7),
)
def test_every_record_once_in_order(
    content: dict[str, list[tuple[int, int]]],
    skew: int,
    max_records: int,
    fetches: list[tuple[str, int]],
    step: int,
) -> None:
    sources = {topic: Log(content[topic]) for topic in TOPICS}
    merged = TimeOrder(
        0, [(topic, 0) for topic in TOPICS], skew_ms=skew, max_idle_ms=0, max_records=max_records
    )
    out: list[tuple[str, int, int]] = []
    everything = [(topic, 1000) for topic in TOPICS]
    for topic, n in fetches + everything:
        merged.add(topic, sources[topic].fetch(n))
        while run := merged.next_run(0.0):
            assert 1 <= len(run.raw) <= max_records
            if len(run.raw) > step:
                run, rest = run.cut(step)
                merged.give_back(rest, step)
            out += [
                (run.topic, offset, ts)
                for offset, ts in zip(run.raw.offsets, run.raw.timestamps, strict=True)
            ]
            assert run.position > run.raw.offsets[-1]
            assert merged.topics[run.topic].next == run.position
    for topic in TOPICS:
        assert [(o, t) for name, o, t in out if name == topic] == sources[topic].records
        assert merged.topics[topic].next == sources[topic].end, "lag reaches 0"
    for i, (topic, _, timestamp) in enumerate(out):
        for later, _, other in out[i + 1 :]:
            earlier_in_cause = TOPICS.index(topic) > TOPICS.index(later)
            if not _out_of_order(content) and later != topic:
                assert timestamp <= other + (0 if earlier_in_cause else skew), "time order up to the skew"


def _out_of_order(content: dict[str, list[tuple[int, int]]]) -> bool:
    return any([t for t, _ in rows] != sorted(t for t, _ in rows) for rows in content.values())
